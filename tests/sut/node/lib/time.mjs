import { performance } from 'node:perf_hooks';

/** The longest that one timer of the runtime is asked for. */
const LONGEST_TIMER = 60_000;

/** @returns {number} milliseconds of a clock that never goes back */
export const now = () => performance.now();

/** What `within` gives when the time was over first. */
export const LATE = Symbol('late');

/**
 * Rest until a moment, in pieces that a 32-bit timer can take; an aborted signal ends it early.
 * @param {number} moment on the clock of `now`, may be Infinity
 * @param {AbortSignal} [signal]
 */
export async function sleepUntil(moment, signal) {
  while (!signal?.aborted && now() < moment) {
    await new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, Math.max(1, Math.min(LONGEST_TIMER, Math.ceil(moment - now()))));
      signal?.addEventListener('abort', done, { once: true });
    });
  }
}

/** @param {number} ms @param {AbortSignal} [signal] */
export const sleep = (ms, signal) => sleepUntil(now() + ms, signal);

/**
 * The value of a promise, or LATE when the moment came first or the signal was aborted.
 * @template T
 * @param {Promise<T>} promise
 * @param {number} moment
 * @param {AbortSignal} [signal]
 * @returns {Promise<T | typeof LATE>}
 */
export async function within(promise, moment, signal) {
  const over = new AbortController();
  const follow = () => over.abort();
  if (signal?.aborted) over.abort();
  signal?.addEventListener('abort', follow, { once: true });
  promise.catch(() => {});
  try {
    return await Promise.race([promise, sleepUntil(moment, over.signal).then(() => LATE)]);
  } finally {
    over.abort();
    signal?.removeEventListener('abort', follow);
  }
}
