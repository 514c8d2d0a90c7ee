'use strict';

const assert = require('assert');
const { compare, sort } = require('../semver.js');

assert.strictEqual(compare('1.2.3', '1.2.3'), 0);
assert.strictEqual(compare('1.2.3', '1.10.0'), -1);
assert.strictEqual(compare('2.0.0', '1.99.99'), 1);
assert.strictEqual(compare('1.0.0+a', '1.0.0+b'), 0);
assert.deepStrictEqual(sort(['1.10.0', '1.9.0', '1.2.0']), ['1.2.0', '1.9.0', '1.10.0']);
assert.throws(() => compare('1.2', '1.2.0'), /not a version: 1\.2/);
assert.throws(() => compare('01.2.0', '1.2.0'), /not a version/);
console.log('ok');
