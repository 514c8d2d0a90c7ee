'use strict';

const assert = require('assert');
const { load } = require('../config.js');

const defaults = { name: 'app', colors: ['red'], verbose: false, onError: () => 'failed' };
assert.deepStrictEqual(load(defaults), defaults);
assert.deepStrictEqual(load(defaults, { verbose: true }, { name: 'b' }).name, 'b');
assert.deepStrictEqual(load(defaults, { colors: ['blue', 'green'] }).colors, ['blue', 'green']);
assert.strictEqual('name' in load(defaults, { name: null }), false);
assert.strictEqual(load(defaults).onError(), 'failed');
assert.strictEqual(defaults.name, 'app');
console.log('ok');
