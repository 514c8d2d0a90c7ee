'use strict';

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

// Returns the numbers of a version as strings, and its pre-release or undefined.
function parse(version) {
  const match = VERSION.exec(version);
  if (!match) {
    throw new Error(`not a version: ${version}`);
  }
  return { numbers: match.slice(1, 4), prerelease: match[4] };
}

// Compares two strings of digits.
function compareDigits(a, b) {
  if (a.length !== b.length) {
    return a.length < b.length ? -1 : 1;
  }
  return a === b ? 0 : a < b ? -1 : 1;
}

function compareIdentifiers(a, b) {
  const digits = [a, b].map((identifier) => /^\d+$/.test(identifier));
  if (digits[0] && digits[1]) {
    return compareDigits(a, b);
  }
  if (digits[0] !== digits[1]) {
    return digits[0] ? -1 : 1;
  }
  return a === b ? 0 : a < b ? -1 : 1;
}

function comparePrereleases(a, b) {
  if (a === undefined || b === undefined) {
    return a === b ? 0 : a === undefined ? 1 : -1;
  }
  const left = a.split('.');
  const right = b.split('.');
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    const result = compareIdentifiers(left[index], right[index]);
    if (result !== 0) {
      return result;
    }
  }
  return Math.sign(left.length - right.length);
}

function compare(left, right) {
  const a = parse(left);
  const b = parse(right);
  for (let index = 0; index < 3; index += 1) {
    const result = compareDigits(a.numbers[index], b.numbers[index]);
    if (result !== 0) {
      return result;
    }
  }
  return comparePrereleases(a.prerelease, b.prerelease);
}

function sort(versions) {
  return [...versions].sort(compare);
}

module.exports = { compare, sort };
