'use strict';

const assert = require('assert');
const { Pool } = require('../pool.js');

const tests = {
  async 'rejected jobs free their places'() {
    const pool = new Pool(1);
    await assert.rejects(pool.run(() => Promise.reject(new Error('one'))), /one/);
    assert.strictEqual(await pool.run(async () => 1), 1);
  },
  async 'jobs that throw free their places'() {
    const pool = new Pool(1);
    await assert.rejects(pool.run(() => { throw new Error('two'); }), /two/);
    assert.strictEqual(await pool.run(async () => 2), 2);
    await new Promise(setImmediate);
    assert.deepStrictEqual([pool.active, pool.waiting], [0, 0]);
  },
  async 'jobs that throw after waiting'() {
    const pool = new Pool(1);
    const results = [
      pool.run(async () => 1),
      pool.run(() => { throw new Error('three'); }),
      pool.run(() => { throw new Error('four'); }),
      pool.run(() => 5),
    ];
    const settled = await Promise.allSettled(results);
    assert.deepStrictEqual(settled.map((one) => one.value || one.reason.message), [1, 'three', 'four', 5]);
  },
  async 'many failures'() {
    const pool = new Pool(2);
    const jobs = Array.from({ length: 50 }, (_, index) => pool.run(() => {
      if (index % 3 === 0) { throw new Error(`thrown ${index}`); }
      return index % 3 === 1 ? Promise.reject(new Error(`rejected ${index}`)) : index;
    }));
    const settled = await Promise.allSettled(jobs);
    settled.forEach((one, index) => {
      const expected = index % 3 === 2 ? index : `${index % 3 === 0 ? 'thrown' : 'rejected'} ${index}`;
      assert.strictEqual(one.status === 'fulfilled' ? one.value : one.reason.message, expected);
    });
    await new Promise(setImmediate);
    assert.deepStrictEqual([pool.active, pool.waiting], [0, 0]);
  },
  async 'the limit holds with failures'() {
    const pool = new Pool(2);
    let running = 0;
    let most = 0;
    const job = (fails) => async () => {
      running += 1;
      most = Math.max(most, running);
      await null;
      await null;
      running -= 1;
      if (fails) { throw new Error('x'); }
    };
    await Promise.allSettled(Array.from({ length: 20 }, (_, index) => pool.run(job(index % 2))));
    assert.strictEqual(most, 2);
  },
  async 'a job is started before run returns'() {
    const pool = new Pool(1);
    let started = false;
    const result = pool.run(() => { started = true; return 3; });
    assert.strictEqual(started, true);
    assert.strictEqual(await result, 3);
  },
};

let failed = 0;
let finished = false;
process.on('unhandledRejection', (error) => {
  failed += 1;
  console.log(`unhandled rejection: ${error.message}`);
});
// A promise that never settles lets node exit early and with status 0.
process.on('exit', () => {
  if (!finished) { console.log('a promise of the pool was never settled'); }
  if (!finished || failed) { process.exitCode = 1; }
});
(async () => {
  for (const [name, test] of Object.entries(tests)) {
    console.log(`- ${name}`);
    try {
      await test();
    } catch (error) {
      failed += 1;
      console.log(error.message);
    }
  }
  finished = true;
})();
