'use strict';

const assert = require('assert');
const { Limiter } = require('../limiter.js');

let time = 0;
const limiter = new Limiter({ limit: 2, windowMs: 1000, now: () => time });
assert.strictEqual(limiter.allow('a'), true);
assert.strictEqual(limiter.retryAfter('a'), 0);
assert.strictEqual(limiter.allow('a'), true);
assert.strictEqual(limiter.allow('a'), false);
assert.strictEqual(limiter.allow('b'), true);
assert.strictEqual(limiter.retryAfter('a'), 1000);
time = 2500;
assert.strictEqual(limiter.retryAfter('a'), 0);
assert.strictEqual(limiter.allow('a'), true);
console.log('ok');
