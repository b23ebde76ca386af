import { lastSeen, settle, unsettled } from './settle.mjs';
import { LATE, now, sleepUntil, within } from './time.mjs';

/** How long the first look may take when the wait itself has no time for one. */
const ONLY_LOOK_MS = 4_000;
const FIRST_LOOK_MS = 500;
const MISSING_LOOKS = 2;

/**
 * D8: look until the child has settled, the time is over, or the signal says how it ended. It never fails.
 * @param {{child: import('./child.mjs').Child, look: () => Promise<import('./terminal.mjs').Seen>, pollMs: number,
 *   timeoutMs: number | null, signal: AbortSignal}} options the signal's reason is the reason of the result
 * @returns {Promise<object>}
 */
export async function waitSettled({ child, look, pollMs, timeoutMs, signal }) {
  const begin = now();
  const end = timeoutMs === null ? Infinity : begin + timeoutMs;
  let newest = null;
  let missing = 0;
  const over = (reason) => ({ ...unsettled(reason), ...lastSeen(newest) });
  let lookEnd = Math.max(end, begin + (timeoutMs !== null && timeoutMs <= 0 ? ONLY_LOOK_MS : FIRST_LOOK_MS));
  while (!signal.aborted) {
    if (child.retired) return over('gone');
    const seen = await within(look().catch((failure) => failure), lookEnd, signal);
    if (signal.aborted) break;
    if (seen === LATE) return over('timeout');
    if (seen.terminal !== undefined) {
      if (!child.is(seen)) return over('gone');
      missing = 0;
      newest = seen.terminal;
      const result = settle(newest, child.promptTurn);
      if (result !== null) return { ...result, ...lastSeen(newest) };
    } else if (seen.kind === 'no_such_terminal' && ++missing >= MISSING_LOOKS) {
      child.lost = true;
      return over('gone');
    }
    await sleepUntil(Math.min(now() + pollMs, end), signal);
    if (now() >= end) break;
    lookEnd = end;
  }
  return over(signal.aborted ? signal.reason : 'timeout');
}
