import assert from 'node:assert/strict';
import test from 'node:test';
import { Child } from '../lib/child.mjs';
import { lastSeen, settle, unsettled } from '../lib/settle.mjs';
import { readTerminal } from '../lib/terminal.mjs';

const RAW = {
  address: 't2', name: 'n', argv: ['pi'], cwd: '/', state: 'running', status: null, turn: 0, exit_code: null, signal: null,
  labels: {}, parent: 't1', created_ms: 1, more: true,
};
const look = (more) => readTerminal({ ...RAW, ...more });
const child = () => new Child({ token: 'c', handle: 'h', name: 'n', sessionFile: '/s', start: { terminal: look(), coreId: 'core' }, startTurn: 0 });

test('D8: only a later turn that is done, or the end', () => {
  assert.equal(settle(look({ status: { state: 'idle' } }), 0), null);
  assert.equal(settle(look({ status: { state: 'done' } }), 0), null);
  assert.equal(settle(look({ turn: 1, status: { state: 'working' } }), 0), null);
  assert.deepEqual(settle(look({ turn: 1, status: { state: 'done' } }), 0), { settled: true, abnormal: false });
  assert.deepEqual(settle(look({ state: 'finished', exit_code: 3 }), 9), { settled: true, abnormal: false, exitCode: 3 });
  assert.deepEqual(settle(look({ state: 'finished', signal: 'SIGHUP' }), 9), { settled: true, abnormal: false, signal: 'SIGHUP' });
});

test('how a wait ended, and what was seen last', () => {
  assert.deepEqual(unsettled('gone'), { settled: false, abnormal: true, reason: 'gone' });
  assert.deepEqual(unsettled('timeout'), { settled: false, abnormal: false, reason: 'timeout' });
  assert.deepEqual(lastSeen(null), {});
  assert.deepEqual(lastSeen(look({ turn: 2 })), { lastTurn: 2 });
});

test('what is no terminal', () => {
  for (const more of [{ turn: '1' }, { state: 'odd' }, { address: 1 }, { status: 'done' }]) assert.equal(look(more), null);
});

test('a prompt that was refused is no prompt, whatever came meanwhile', () => {
  const it = child();
  const undo = it.beginPrompt(1, 'u1');
  assert.equal(it.promptTurn, 1);
  it.beginPrompt(2, 'u2');
  undo();
  assert.deepEqual([it.promptTurn, it.stalePrompt], [2, 'u2']);
});

test('another incarnation is told by address, birth, arguments and core', () => {
  for (const [more, coreId] of [[{ address: 't9' }, 'core'], [{ created_ms: 2 }, 'core'], [{ argv: ['sh'] }, 'core'], [{}, 'other']]) {
    const it = child();
    assert.equal(it.is({ terminal: look(more), coreId }), false);
    assert.equal(it.holdsName, false);
  }
  const it = child();
  assert.equal(it.is({ terminal: look({ turn: 5, state: 'finished' }), coreId: 'core' }), true);
  assert.deepEqual([it.finished, it.holdsName], [true, true]);
});

test('work in turn goes on after a failure', async () => {
  const it = child();
  const order = [];
  const first = it.inTurn(async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    order.push(1);
    throw new Error('no');
  });
  const second = it.inTurn(async () => order.push(2));
  await assert.rejects(first);
  await second;
  assert.deepEqual(order, [1, 2]);
});
