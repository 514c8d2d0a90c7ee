'use strict';

const assert = require('assert');
const { Limiter } = require('../limiter.js');

let failed = 0;
// Steps are [time, expected result of allow, expected retryAfter before it].
function check(what, limit, windowMs, steps) {
  let time = 0;
  try {
    const limiter = new Limiter({ limit, windowMs, now: () => time });
    for (const [at, allowed, wait] of steps) {
      time = at;
      if (wait !== undefined) {
        assert.strictEqual(limiter.retryAfter('a'), wait, `retryAfter at ${at}`);
      }
      assert.strictEqual(limiter.allow('a'), allowed, `allow at ${at}`);
    }
  } catch (error) {
    failed += 1;
    console.log(`${what}: ${error.message}`);
  }
}

check('around a full second', 3, 1000, [
  [990, true], [990, true], [990, true], [1000, false, 990], [1989, false, 1], [1990, true, 0],
]);
check('edge of the window', 1, 1000, [[0, true, 0], [999, false, 1], [1000, true, 0], [1999, false, 1], [2000, true, 0]]);
check('refused requests do not count', 1, 1000, [
  [0, true], [300, false], [600, false], [900, false, 100], [1000, true, 0], [1500, false, 500], [2000, true],
]);
check('requests leave the window one by one', 2, 1000, [
  [0, true], [400, true], [500, false, 500], [1000, true, 0], [1100, false, 300], [1400, true, 0], [1500, false, 500],
]);
check('late start', 2, 1000, [[123456789, true], [123456789, true], [123457788, false, 1], [123457789, true, 0]]);

let time = 0;
const limiter = new Limiter({ limit: 1, windowMs: 10, now: () => time });
try {
  for (const key of ['a', 'b', '__proto__', 'constructor']) {
    assert.strictEqual(limiter.allow(key), true, `first request of ${key}`);
    assert.strictEqual(limiter.allow(key), false, `second request of ${key}`);
  }
  time = 10;
  for (let repeat = 0; repeat < 3; repeat += 1) {
    assert.strictEqual(limiter.retryAfter('a'), 0, 'retryAfter is no request');
  }
  assert.strictEqual(limiter.allow('a'), true);
} catch (error) {
  failed += 1;
  console.log(`keys: ${error.message}`);
}
process.exit(failed ? 1 : 0);
