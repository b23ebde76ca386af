import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { Bridge } from '../lib/bridge.mjs';
import { HcClient } from '../lib/hc-client.mjs';

/** Work with a program that is there as long as the work lasts. */
async function withProgram(text, work) {
  const folder = await mkdtemp(join(tmpdir(), 'bridge-'));
  const program = join(folder, 'hc');
  try {
    await writeFile(program, text, { mode: 0o700 });
    return await work(program);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Work with what would be closed, and close it. */
async function closing(it, work) {
  try {
    return await work(it).catch((failure) => failure);
  } finally {
    await it.close();
  }
}

/** One call over a bridge whose other end is this shell script. */
function call(script, work = (bridge) => bridge.request('terminal.get', {}, 8_000)) {
  let ids = 6;
  return withProgram(`#!/bin/sh\n${script}\n`, (program) => closing(new Bridge(program, process.env, () => ++ids), work));
}
const REPLY = `{"id":"7","result":{"a":1}}`;

test('an answer, with noise before it, in pieces, and without its line feed at the end', async () => {
  assert.deepEqual(await call(`read x; echo noise; echo '${REPLY}'; cat >/dev/null`), { a: 1 });
  assert.deepEqual(await call(`read x; printf '{"id":7,'; sleep 0.05; printf '"result":{"a":1}}'`), { a: 1 });
});

test('how a link ended', async () => {
  const exits = await call('read x; echo no core >&2; exit 3');
  assert.equal(exits.code, 'host-unreachable');
  assert.match(exits.message, /exit code 3.*no core/);
  const cut = await call(`read x; printf '{"id":7,"resu'`);
  assert.equal(cut.code, 'protocol');
  assert.match(cut.message, /inside a frame/);
  const word = await call('read x; echo \'{"method":"hi"}\'; printf bye');
  assert.equal(word.code, 'host-unreachable');
});

test('lines without any message among them are given up early', async () => {
  const begin = Date.now();
  const few = await call('read x; echo hello; cat >/dev/null');
  assert.equal(few.code, 'protocol');
  assert.match(few.message, /noise/);
  assert.ok(Date.now() - begin < 5_000);
  const many = await call('read x; for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done; cat >/dev/null');
  assert.match(many.message, /noise.*: 10 lines/);
});

test('an error without an id ends every open call', async () => {
  const orphan = `echo '{"id":null,"error":{"message":"no","data":{"kind":"odd"}}}'; cat >/dev/null`;
  const one = await call(`read x; ${orphan}`);
  assert.deepEqual([one.reason, one.code, one.error.data.kind], ['orphan', '', 'odd']);
  const both = await call(`read x; read x; ${orphan}`, (bridge) => {
    const calls = [1, 2].map(() => bridge.request('terminal.get', {}, 8_000).catch((failure) => failure.code));
    return Promise.all(calls);
  });
  assert.deepEqual(both, ['protocol', 'protocol']);
});

test('two calls at once share one bridge, and wait for its hello', async () => {
  const terminal = '{"address":"t1","turn":0,"state":"running"}';
  const core = `#!/bin/sh
read x; sleep 0.2; echo '{"id":1,"result":{"generation":1,"core_id":"one"}}'
read x; echo '{"id":2,"result":${terminal}}'; read x; echo '{"id":3,"result":${terminal}}'; cat >/dev/null
`;
  const seen = await withProgram(core, (executable) =>
    closing(new HcClient({ executable, env: process.env }), (client) => Promise.all([client.get('a'), client.get('b')])),
  );
  assert.deepEqual(seen.map((one) => one.coreId), ['one', 'one']);
});

test('a program that cannot be started, in whatever way', async () => {
  const reach = (executable) => closing(new HcClient({ executable, env: process.env }), (client) => client.get('a'));
  const failures = [await reach('/nowhere/hc'), await reach('/bin/sh/hc'), await withProgram('\x7fELF', reach)];
  assert.deepEqual(failures.map((failure) => failure.code), Array(3).fill('host-unreachable'));
});
