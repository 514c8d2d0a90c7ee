'use strict';

const assert = require('assert');
const { Pool } = require('../pool.js');

async function main() {
  const pool = new Pool(2);
  const started = [];
  const job = (name) => async () => {
    started.push(name);
    return name;
  };
  const results = ['a', 'b', 'c'].map((name) => pool.run(job(name)));
  assert.deepStrictEqual([started, pool.active, pool.waiting], [['a', 'b'], 2, 1]);
  assert.deepStrictEqual(await Promise.all(results), ['a', 'b', 'c']);
  assert.deepStrictEqual(started, ['a', 'b', 'c']);
  await assert.rejects(pool.run(async () => { throw new Error('no'); }), /no/);
}

main().then(() => console.log('ok'), (error) => { console.log(error); process.exitCode = 1; });
