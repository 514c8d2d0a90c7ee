import type { Category } from "./types";

export interface Row {
  id: string;
  label: string;
  depth: number;
}

/** Categories may be linked from several places, and editors make loops. */
export function flatten(root: Category): Row[] {
  const rows: Row[] = [];
  const seen = new Set<string>();
  const visit = (node: Category, depth: number): void => {
    if (seen.has(node.id)) {
      return;
    }
    seen.add(node.id);
    rows.push({ id: node.id, label: node.label, depth });
    for (const child of node.children) {
      visit(child, depth + 1);
    }
  };
  visit(root, 0);
  return rows;
}

export function labelOf(rows: Row[], id: string): string {
  return rows.find((row) => row.id === id)?.label ?? "";
}
