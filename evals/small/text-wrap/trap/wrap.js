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
  for (let word of line.split(/[ \t]+/)) {
    if (word === '') {
      continue;
    }
    if (current !== '' && current.length + 1 + word.length <= width) {
      current += ` ${word}`;
      continue;
    }
    if (current !== '') {
      lines.push(current);
    }
    while (word.length > width) {
      lines.push(word.slice(0, width));
      word = word.slice(width);
    }
    current = word;
  }
  lines.push(current);
  return lines.join('\n');
}

module.exports = { wrap };
