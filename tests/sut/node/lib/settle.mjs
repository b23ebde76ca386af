import { howEnded } from './terminal.mjs';

/**
 * D8, pure: does this look end the wait?
 * @param {import('./terminal.mjs').Terminal} terminal
 * @param {number} promptTurn the turn remembered before the newest prompt
 * @returns {object | null} the result of the wait, or null when it goes on
 */
export function settle(terminal, promptTurn) {
  if (terminal.state === 'finished') return { settled: true, abnormal: false, ...howEnded(terminal) };
  if (terminal.turn > promptTurn && terminal.status === 'done') return { settled: true, abnormal: false };
  return null;
}

/** @param {string} reason @returns {object} the result of a wait that ended without an answer */
export const unsettled = (reason) => ({ settled: false, abnormal: reason === 'gone', reason });

/**
 * What the newest look of a wait showed.
 * @param {import('./terminal.mjs').Terminal | null} terminal
 */
export function lastSeen(terminal) {
  if (terminal === null) return {};
  return { lastTurn: terminal.turn, ...(terminal.status === null ? {} : { lastStatus: terminal.status }) };
}
