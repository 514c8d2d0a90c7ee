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
  let current = '';
  for (const word of line.split(/[ \t]+/)) {
    if (word === '') {
      continue;
    }
    if (current === '') {
      current = word;
    } else if (current.length + 1 + word.length <= width) {
      current += ` ${word}`;
    } else {
      lines.push(current);
      current = word;
    }
  }
  lines.push(current);
  return lines.join('\n');
}

module.exports = { wrap };
