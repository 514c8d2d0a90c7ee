'use strict';

const { compare, sort } = require('../semver.js');

const ascending = [
  '0.9.9', '1.0.0-0', '1.0.0-1', '1.0.0-2', '1.0.0-10', '1.0.0-9007199254740992', '1.0.0-9007199254740993',
  '1.0.0--', '1.0.0-1a', '1.0.0-Beta', '1.0.0-Z', '1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.1.1',
  '1.0.0-alpha.2', '1.0.0-alpha.10', '1.0.0-alpha.beta', '1.0.0-alpha-1', '1.0.0-beta', '1.0.0-beta.2', '1.0.0-beta.11',
  '1.0.0-rc.1', '1.0.0-rc.1.x-y', '1.0.0-rc1', '1.0.0-rc10', '1.0.0-rc2', '1.0.0', '1.0.1-a', '1.0.1',
  '1.0.9007199254740992', '1.0.9007199254740993', '1.1.0', '2.0.0-rc.1', '2.0.0', '10.0.0-a', '10.0.0',
];
let failed = 0;
function expect(a, b, result) {
  let got;
  try {
    got = compare(a, b);
  } catch (error) {
    got = error.message;
  }
  if (got !== result) {
    failed += 1;
    if (failed <= 10) {
      console.log(`compare('${a}', '${b}') is ${got}, expected ${result}`);
    }
  }
}
ascending.forEach((a, i) => ascending.forEach((b, j) => expect(a, b, Math.sign(i - j))));
expect('1.0.0-rc.1+x', '1.0.0-rc.1+y', 0);
expect('1.0.0-rc.1+1', '1.0.0-rc.2', -1);
expect('1.0.0+a-b', '1.0.0', 0);
expect('1.0.0+a-b', '1.0.0-a', 1);
const shuffled = ascending.map((version, index) => ascending[(index * 11) % ascending.length]);
const before = shuffled.join();
if (sort(shuffled).join() !== ascending.join()) {
  failed += 1;
  console.log('sort gives another order');
}
if (shuffled.join() !== before) {
  failed += 1;
  console.log('sort changes its argument');
}
process.exit(failed ? 1 : 0);
