// @ts-check
// Checked by the compiler of the TypeScript around it; the admin pages load it without a build.

/**
 * @param {number} items
 * @param {number} size
 */
export function pageCount(items, size) {
  if (size <= 0) {
    throw new RangeError(`a page of ${size} items shows nothing`);
  }
  return Math.max(1, Math.ceil(items / size));
}

/**
 * What is shown on a page, counted from 1.
 *
 * @template T
 * @param {readonly T[]} items
 * @param {number} page
 * @param {number} size
 * @returns {T[]}
 */
export function pageOf(items, page, size) {
  const last = pageCount(items.length, size);
  const wanted = Math.min(Math.max(1, page), last);
  return items.slice((wanted - 1) * size, wanted * size);
}
