import assert from 'node:assert/strict';
import test from 'node:test';
import { Child } from '../lib/child.mjs';
import { Failure } from '../lib/failure.mjs';
import { retireChild } from '../lib/retiring.mjs';
import { readTerminal } from '../lib/terminal.mjs';

const seen = (state = 'running', address = 't2') => ({
  coreId: 'core',
  terminal: readTerminal({ address, name: 'n', argv: ['pi'], state, status: null, turn: 0, exit_code: null, signal: null, created_ms: 1 }),
});
const fails = (kind) => new Failure('call-failed', `refused: ${kind}`, { kind });

/** A client that answers from lists, the last answer again and again; `never` is no answer at all. */
function scripted({ get = [], kill = [{}], rm = [{}] }) {
  const calls = [];
  const lists = { get: [...get], kill: [...kill], rm: [...rm] };
  const answer = (what) => {
    calls.push(what);
    const value = lists[what].length > 1 ? lists[what].shift() : lists[what][0];
    if (value === 'never') return new Promise(() => {});
    return value instanceof Error ? Promise.reject(value) : Promise.resolve(value);
  };
  return { calls, client: { get: () => answer('get'), act: (what) => answer(what) } };
}

/** @returns {Promise<{calls: string, ended: boolean, removed: boolean, note: string | null, child: Child}>} */
async function retire(script) {
  const child = new Child({ token: 'c', handle: 'h', name: 'n', sessionFile: '/s', start: seen(), startTurn: 0 });
  const { calls, client } = scripted(script);
  const result = await retireChild({ child, client, pollMs: 20 });
  return { ...result, calls: calls.join(' '), child };
}

test('look, kill, look until it has finished, rm', async () => {
  const { calls, ended, removed, note } = await retire({ get: [seen(), seen(), seen('finished')] });
  assert.deepEqual([calls, ended, removed, note], ['get kill get get rm', true, true, null]);
});

test('rm is tried again, and its failure is told', async () => {
  const slow = await retire({ get: [seen('finished')], rm: [fails('not_finished'), fails('not_finished'), {}] });
  assert.deepEqual([slow.calls, slow.removed], ['get kill rm rm rm', true]);
  const never = await retire({ get: [seen('finished')], rm: [fails('unknown_method')] });
  assert.deepEqual([never.calls, never.ended, never.removed], ['get kill rm', true, false]);
  assert.match(never.note, /unknown_method/);
});

test('one that is gone needs nothing, a stranger is left alone', async () => {
  const gone = await retire({ get: [fails('no_such_terminal')] });
  assert.deepEqual([gone.calls, gone.ended, gone.removed], ['get', true, true]);
  const stranger = await retire({ get: [seen('running', 't9')] });
  assert.deepEqual([stranger.calls, stranger.ended, stranger.removed], ['get', false, false]);
});

test('looks that fail are made again, and without any nothing is killed', async () => {
  const lucky = await retire({ get: [fails('odd'), seen('finished')] });
  assert.deepEqual([lucky.calls, lucky.removed], ['get get kill rm', true]);
  const blind = await retire({ get: [fails('odd')] });
  assert.deepEqual([blind.calls, blind.ended, blind.removed, blind.child.retired], ['get get get', false, false, false]);
});

test('neither a kill nor looks without an answer use up the time, and rm is tried', { timeout: 15_000 }, async () => {
  const begin = Date.now();
  const deaf = retire({ get: [seen()], kill: ['never'] });
  const [kill, looks] = await Promise.all([retire({ get: [seen(), seen('finished')], kill: ['never'] }), retire({ get: [seen(), 'never'] })]);
  assert.deepEqual([kill.calls, kill.removed], ['get kill get rm', true]);
  assert.match(looks.calls, /^get kill( get)+ rm$/);
  assert.deepEqual([(await deaf).ended, (await deaf).removed, (await deaf).calls.endsWith('get')], [false, false, true]);
  assert.ok(Date.now() - begin < 12_000);
});
