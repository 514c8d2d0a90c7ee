'use strict';

const assert = require('assert');
const { wrap } = require('../wrap.js');

assert.strictEqual(wrap('one two three', 7), 'one two\nthree');
assert.strictEqual(wrap('one two three', 8), 'one two\nthree');
assert.strictEqual(wrap('  one \t two  ', 20), 'one two');
assert.strictEqual(wrap('a b\n\nc', 3), 'a b\n\nc');
assert.strictEqual(wrap('', 5), '');
assert.throws(() => wrap('a', 0), RangeError);
console.log('ok');
