import assert from 'node:assert/strict';
import test from 'node:test';
import { childArgv, formatTask } from '../lib/argv.mjs';
import { childEnv, hcExecutable, terminalHostAvailable } from '../lib/env.mjs';
import { childLabels, terminalName } from '../lib/names.mjs';
import { takeSpawn } from '../lib/requests.mjs';
import { arbitrate, guard } from '../lib/routing.mjs';
import { turnBefore } from '../lib/starting.mjs';

const INSIDE = { HC_TERMINAL_SOCKET: '/s', HC_TERMINAL_ID: 't1' };
const code = (word) => (failure) => failure.code === word;

test('D2 and D1: the host and the mode', () => {
  assert.equal(terminalHostAvailable({ ...INSIDE, HC_TERMINAL_ID: '' }), false);
  assert.equal(arbitrate({ agent: 'centurion', worktree: true, env: INSIDE }), 'terminal');
  assert.equal(arbitrate({ agent: 'centurion', worktree: true, env: {} }), 'rpc');
  assert.equal(arbitrate({ agent: 'scout', worktree: true, env: INSIDE }), 'rpc');
  assert.equal(arbitrate({ agent: 'centurion', worktree: false, env: INSIDE }), 'inprocess');
});

test('what must not start', () => {
  assert.throws(() => guard({ agent: 'scout', worktree: true }, 'rpc'), code('worktree-refused'));
  assert.throws(() => guard({ agent: 'centurion', worktree: true }, 'inprocess'), code('worktree-refused'));
  assert.throws(() => guard({ agent: 'scout', worktree: false }, 'terminal'), code('bad-request'));
  guard({ agent: 'centurion', worktree: true }, 'terminal');
});

test('D3: where hc is looked for', () => {
  const only = (path) => (candidate) => candidate === path;
  assert.equal(hcExecutable({ HC_BIN: '/x/hc', PATH: '/a' }, () => true), '/x/hc');
  assert.equal(hcExecutable({ HC_BIN: '', PATH: '/a:/b', HOME: '/h' }, only('/b/hc')), '/b/hc');
  assert.equal(hcExecutable({ PATH: '/a', HOME: '/h' }, only('/h/.local/bin/hc')), '/h/.local/bin/hc');
  assert.equal(hcExecutable({}, () => false), 'hc');
});

test('D5: later layers win, null is not set', () => {
  const env = childEnv({ PATH: '/a', SECRET: 'x', TERM: 't' }, { M: '1', TERM: 'm' }, { M: '2', PATH: null });
  assert.deepEqual(env, { PATH: '/a', TERM: 'm', M: '2' });
  assert.throws(() => childEnv({}, {}, { 'A=B': '' }), code('bad-request'));
  assert.throws(() => childEnv({}, {}, { A: '\0' }), code('bad-request'));
});

test('D6 and D7: labels and names', () => {
  assert.deepEqual(childLabels({ 'herdr.space': 's', 'herdr.tab': 't' }), { 'legion.role': 'centurion', 'herdr.space': 's' });
  assert.equal(terminalName('run00001-more', 'Al.pha'), 'lgl-run00001--l-pha');
  assert.equal(terminalName('😀bcdefghi', '😀'), 'lgl--bcdefgh--');
  assert.equal(terminalName('run00001', 'h'.repeat(99)).length, 32);
});

test('D4: the argument list', () => {
  const request = { sessionFile: '/s', task: '-x', tools: ['a', 'b'], extensions: ['e', 'e'], skills: ['k'], model: 'm', provider: 'p', systemPrompt: '/f' };
  const argv = childArgv(request);
  assert.equal(
    argv.slice(0, -1).join(' '),
    'pi --session /s --model m --provider p --tools a,b --no-extensions -e e -e e --skill k --no-skills --no-context-files --system-prompt /f',
  );
  assert.match(argv.at(-1), /^Task: -x\n/);
  assert.throws(() => childArgv({ sessionFile: 's', task: '' }), code('bad-request'));
  assert.throws(() => childArgv({ sessionFile: '/s', task: 'x'.repeat(131_072) }), /131071/);
});

test('the formatted task adds little, and holds the task as it is', () => {
  const task = ' @a\n\tb ';
  const text = formatTask(task, { branch: 'b/1', allowNested: true });
  assert.ok(text.includes(task) && text.includes('b/1'));
  assert.ok(Buffer.byteLength(text) - Buffer.byteLength(task) <= 170);
});

test('the turn that an adopted child began with', () => {
  for (const [turn, status, before] of [[0, null, 0], [3, 'idle', 3], [1, 'working', 0], [4, 'done', 3], [0, 'blocked', 0]]) {
    assert.equal(turnBefore({ turn, status }), before);
  }
});

test('null counts as left out, and what is no text is refused', () => {
  const least = { handle: 'h', runId: 'r', agent: 'centurion', task: 't', cwd: '/', sessionFile: '/s' };
  assert.deepEqual(takeSpawn({ ...least, model: null, more: 1 }), { ...least, worktree: false });
  assert.throws(() => takeSpawn({ ...least, handle: '' }), code('bad-request'));
  assert.throws(() => takeSpawn({ ...least, task: '\ud800' }), code('bad-request'));
  assert.throws(() => takeSpawn({ ...least, tools: [1] }), code('bad-request'));
});
