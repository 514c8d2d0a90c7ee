'use strict';

const { wrap } = require('../wrap.js');

let failed = 0;
function check(text, width, expected) {
  const got = wrap(text, width);
  if (got !== expected) {
    failed += 1;
    console.log(`wrap(${JSON.stringify(text)}, ${width})\n  is       ${JSON.stringify(got)}\n  expected ${JSON.stringify(expected)}`);
  }
}

check('see abcdefghij k', 4, 'see\nabcd\nefgh\nij k');
check('abcdefgh i', 4, 'abcd\nefgh\ni');
check('abcdefgh', 4, 'abcd\nefgh');
check('abcd', 4, 'abcd');
check('abcde', 4, 'abcd\ne');
check('a abcdef b', 3, 'a\nabc\ndef\nb');
check('abcdefg hi jklmnop', 5, 'abcde\nfg hi\njklmn\nop');
check('abcde fghij', 2, 'ab\ncd\ne\nfg\nhi\nj');
check('abc', 1, 'a\nb\nc');
check('x\nabcdef\n\ny', 3, 'x\nabc\ndef\n\ny');
check('😀😀😀😀😀', 2, '😀😀\n😀😀\n😀');
check('a😀b😀c', 2, 'a😀\nb😀\nc');
check('😀😀 ab', 5, '😀😀 ab');
check('😀😀😀 abc', 7, '😀😀😀 abc');
check('é€😀', 3, 'é€😀');
check('10\u00a0km to go', 6, '10\u00a0km\nto go');
check('a 10\u00a0km', 5, 'a\n10\u00a0km');
process.exit(failed ? 1 : 0);
