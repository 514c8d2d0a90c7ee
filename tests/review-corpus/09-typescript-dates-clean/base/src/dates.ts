const DAY = 24 * 60 * 60 * 1000;

/** Whole days between two dates, whatever their time of day. */
export function daysBetween(from: Date, to: Date): number {
  const start = Date.UTC(from.getUTCFullYear(), from.getUTCMonth(), from.getUTCDate());
  const end = Date.UTC(to.getUTCFullYear(), to.getUTCMonth(), to.getUTCDate());
  return Math.round((end - start) / DAY);
}

export function relative(from: Date, to: Date): string {
  const days = daysBetween(from, to);
  if (days === 0) {
    return "today";
  }
  if (days === 1) {
    return "tomorrow";
  }
  if (days === -1) {
    return "yesterday";
  }
  return days > 0 ? `in ${days} days` : `${-days} days ago`;
}
