export interface Category {
  id: string;
  label: string;
  children: Category[];
}
