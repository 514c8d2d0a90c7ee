'use strict';

const assert = require('assert');
const { load } = require('../config.js');

let failed = 0;
function check(what, run) {
  try {
    run();
  } catch (error) {
    failed += 1;
    console.log(`${what}: ${error.message}`);
  }
}
const onError = () => 'failed';
const defaults = () => ({
  server: { port: 80, host: 'a', tls: { cert: 'c', key: 'k' } }, tags: [{ a: 1 }], none: null, onError, log: { onError },
});
function merged(expected, ...layers) {
  assert.deepStrictEqual(load(defaults(), ...layers), { ...defaults(), ...expected });
}

check('the reported case', () => merged({ server: { port: 9000, host: 'a', tls: { cert: 'c', key: 'k' } } }, { server: { port: 9000 } }));
check('any depth', () => merged({ server: { port: 80, host: 'a', tls: { cert: 'c', key: 'x' } } }, { server: { tls: { key: 'x' } } }));
check('several layers', () => merged(
  { server: { port: 2, host: 'b', tls: { cert: 'c', key: 'k' } }, more: { a: 1, b: 2 } },
  { server: { port: 1, host: 'b' }, more: { a: 1 } }, { server: { port: 2 }, more: { b: 2 } },
));
check('arrays are replaced', () => merged({ tags: [{ b: 2 }] }, { tags: [{ b: 2 }] }));
check('null removes', () => merged({ server: { port: 80, host: 'a' } }, { server: { tls: null } }));
check('null removes a whole section', () => assert.strictEqual('server' in load(defaults(), { server: null }), false));
check('null in a new section', () => merged({ fresh: { a: 1 } }, { fresh: { a: 1, b: null } }));
check('a section again after null', () => merged({ server: { port: 1 } }, { server: null }, { server: { port: 1 } }));
check('section for a value', () => merged({ tags: { a: 1 }, none: { b: 1 } }, { tags: { a: 1 }, none: { b: 1 } }));
check('value for a section', () => merged({ server: false }, { server: false }));
check('array for a section', () => merged({ server: [1] }, { server: [1] }));
check('functions', () => assert.strictEqual(load(defaults(), { log: { a: 1 } }).log.onError, onError));
check('falsy values', () => merged({ server: { port: 0, host: '', tls: false } }, { server: { port: 0, host: '', tls: false } }));

check('defaults and layers are not changed', () => {
  const shared = defaults();
  const layers = [{ server: { port: 1, tls: { cert: 'x' } }, more: { a: { b: 1 } } }, { server: { tls: null }, more: { a: { c: 2 } } }];
  const before = JSON.stringify(layers);
  load(shared, ...layers);
  assert.deepStrictEqual(shared, defaults());
  assert.strictEqual(JSON.stringify(layers), before);
  assert.strictEqual(load(shared).server.port, 80);
});
check('results are separate', () => {
  const shared = defaults();
  const layer = { more: { a: { b: 1 } } };
  const one = load(shared, layer);
  one.server.port = 5;
  one.server.tls.key = 'z';
  one.log.level = 1;
  one.more.a.b = 2;
  assert.deepStrictEqual(shared, defaults());
  assert.deepStrictEqual(load(shared, layer), { ...defaults(), more: { a: { b: 1 } } });
});
check('__proto__ is ignored', () => {
  const result = load(defaults(), JSON.parse('{"__proto__": {"bad": 1}, "server": {"__proto__": {"bad": 1}}, "x": {"__proto__": {"bad": 1}}}'));
  assert.strictEqual({}.bad, undefined);
  assert.strictEqual(result.bad, undefined);
  assert.strictEqual(result.server.bad, undefined);
  assert.strictEqual(result.x.bad, undefined);
});
process.exit(failed ? 1 : 0);
