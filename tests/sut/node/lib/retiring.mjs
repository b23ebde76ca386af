import { LATE, now, sleepUntil, within } from './time.mjs';

const FINISH_MS = 8_000;
/** How long the answer to one call is waited for; a look decides what became of it. */
const LOOK_MS = 2_000;
const KILL_MS = 2_000;
const REMOVE_MS = 2_000;
const FIRST_LOOKS = 3;
const REMOVE_TRIES = 4;
const REMOVE_ALL_MS = 4_000;

/**
 * D11: end a child and take its terminal off the list. It never fails, and it removes nothing that lives.
 * @param {{child: import('./child.mjs').Child, client: import('./hc-client.mjs').HcClient, pollMs: number}} options
 * @returns {Promise<{ended: boolean, removed: boolean, note: string | null}>}
 */
export async function retireChild({ child, client, pollMs }) {
  const end = now() + FINISH_MS;
  const look = () => bounded(client.get(child.name, LOOK_MS), Math.min(end, now() + LOOK_MS));
  const rest = () => sleepUntil(Math.min(now() + pollMs, end));

  let seen = await look();
  for (let looks = 1; undecided(seen) && looks < FIRST_LOOKS && now() < end; looks++) {
    await rest();
    seen = await look();
  }
  if (undecided(seen)) return outcome(false, false, `it could not be looked at: ${seen.message}`);
  child.retired = true;
  if (over(child, seen)) return over(child, seen);

  const killed = await bounded(client.act('kill', child.name, KILL_MS), now() + KILL_MS);
  const note = killed instanceof Error && killed.kind !== 'not_live' ? `kill: ${killed.message}` : null;
  while (!child.finished && now() < end) {
    await rest();
    seen = await look();
    if (over(child, seen)) return over(child, seen);
  }
  if (!child.finished && !undecided(seen)) return outcome(false, false, note ?? 'its program did not end in time');
  return removeTerminal({ child, client, pollMs });
}

/** `rm`, again when the core says that it has not finished. Without a look that showed the end, the core decides. */
async function removeTerminal({ child, client, pollMs }) {
  const end = now() + REMOVE_ALL_MS;
  for (let tries = 1; ; tries++) {
    const removed = await bounded(client.act('rm', child.name, REMOVE_MS), now() + REMOVE_MS);
    if (!(removed instanceof Error) || removed.kind === 'no_such_terminal') return outcome(true, true);
    const again = removed.kind === 'not_finished' && tries < REMOVE_TRIES && now() + pollMs < end;
    if (!again) return outcome(child.finished, false, `rm: ${removed.message}`);
    await sleepUntil(now() + pollMs);
  }
}

/** @returns {{ended: boolean, removed: boolean, note: string | null}} */
const outcome = (ended, removed, note = null) => ({ ended, removed, note });

/** @returns {Promise<any>} what came, or the Error that came instead, at the latest at that moment */
async function bounded(promise, moment) {
  const value = await within(promise.catch((failure) => failure), moment);
  return value === LATE ? new Error('no answer in time') : value;
}

/** @returns {boolean} whether a look says nothing about the terminal */
const undecided = (seen) => seen instanceof Error && seen.kind !== 'no_such_terminal';

/** What there is to say when the terminal is not there, or another one is. */
function over(child, seen) {
  if (undecided(seen)) return null;
  if (seen instanceof Error) return outcome(true, true);
  return child.is(seen) ? null : outcome(false, false, 'another terminal has its name now; it was left alone');
}
