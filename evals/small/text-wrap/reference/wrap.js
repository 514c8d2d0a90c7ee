'use strict';

// Breaks a text into lines of at most width characters. See README.md.
function wrap(text, width) {
  if (!Number.isInteger(width) || width < 1) {
    throw new RangeError(`width must be an integer of at least 1, not ${width}`);
  }
  return text.split('\n').map((line) => wrapLine(line, width)).join('\n');
}

function wrapLine(line, width) {
  const lines = [];
  // Arrays of code points: the length of a string counts an emoji twice.
  let current = [];
  for (const word of line.split(/[ \t]+/)) {
    let rest = [...word];
    if (rest.length === 0) {
      continue;
    }
    if (current.length > 0 && current.length + 1 + rest.length <= width) {
      current.push(' ', ...rest);
      continue;
    }
    if (current.length > 0) {
      lines.push(current);
    }
    while (rest.length > width) {
      lines.push(rest.slice(0, width));
      rest = rest.slice(width);
    }
    current = rest;
  }
  lines.push(current);
  return lines.map((characters) => characters.join('')).join('\n');
}

module.exports = { wrap };
