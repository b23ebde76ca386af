import { LATE, now, sleepUntil, within } from './time.mjs';

const FINISH_MS = 8_000;
/** How long the answer to a call is waited for; a look decides what became of it. */
const ANSWER_MS = 2_000;
const REMOVE_TRIES = 4;

/**
 * D11: end a child and take its terminal off the list. It never fails, and it removes nothing that lives.
 * @param {{child: import('./child.mjs').Child, client: import('./hc-client.mjs').HcClient, pollMs: number}} options
 * @returns {Promise<{ended: boolean, removed: boolean, note: string | null}>}
 */
export async function retireChild({ child, client, pollMs }) {
  const end = now() + FINISH_MS;
  const outcome = (ended, removed, note = null) => ({ ended, removed, note });
  const bounded = async (promise, moment) => {
    const value = await within(promise.catch((failure) => failure), moment);
    return value === LATE ? new Error('no answer in time') : value;
  };
  const judge = (seen) => {
    if (seen instanceof Error) return seen.kind === 'no_such_terminal' ? outcome(true, true) : null;
    return child.is(seen) ? null : outcome(false, false, 'another terminal has its name now; it was left alone');
  };

  let seen = await bounded(client.get(child.name), end);
  if (seen instanceof Error && seen.kind !== 'no_such_terminal') seen = await bounded(client.get(child.name), end);
  const first = judge(seen);
  if (first !== null) {
    child.retired = true;
    return first;
  }
  if (seen instanceof Error) return outcome(false, false, `it could not be looked at: ${seen.message}`);

  child.retired = true;
  let answered = now();
  const killed = await bounded(client.act('kill', child.name), Math.min(end, now() + ANSWER_MS));
  let note = killed instanceof Error && killed.kind !== 'not_live' ? `kill: ${killed.message}` : null;
  while (!child.finished) {
    if (now() >= end) return outcome(false, false, note ?? 'its program did not end in time');
    await sleepUntil(Math.min(answered + pollMs, end));
    seen = await bounded(client.get(child.name), end);
    answered = now();
    const result = judge(seen);
    if (result !== null) return result;
  }

  for (let tries = 1; ; tries++) {
    const removed = await bounded(client.act('rm', child.name), now() + ANSWER_MS);
    if (!(removed instanceof Error) || removed.kind === 'no_such_terminal') return outcome(true, true);
    note = `rm: ${removed.message}`;
    if (removed.kind !== 'not_finished' || tries >= REMOVE_TRIES) return outcome(true, false, note);
    await sleepUntil(now() + pollMs);
  }
}
