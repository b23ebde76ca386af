import { isObject } from './frames.mjs';

/**
 * A terminal as the core showed it.
 * @typedef {{address: string, name: string | null, argv: string[], labels: Record<string, string>, parent: string | null,
 *   createdMs: number, state: 'running' | 'finished', status: string | null, turn: number, exitCode: number | null,
 *   signal: string | null}} Terminal
 * @typedef {{terminal: Terminal, coreId: string}} Seen
 */

/**
 * @param {any} value the result of terminal.get or terminal.run
 * @returns {Terminal | null} null when it is no terminal
 */
export function readTerminal(value) {
  if (!isObject(value)) return null;
  const status = value.status ?? null;
  const right =
    typeof value.address === 'string' &&
    Number.isInteger(value.turn) &&
    (value.state === 'running' || value.state === 'finished') &&
    (status === null || (isObject(status) && typeof status.state === 'string'));
  if (!right) return null;
  return {
    address: value.address,
    name: typeof value.name === 'string' ? value.name : null,
    argv: Array.isArray(value.argv) ? value.argv : [],
    labels: isObject(value.labels) ? value.labels : {},
    parent: typeof value.parent === 'string' ? value.parent : null,
    createdMs: value.created_ms ?? null,
    state: value.state,
    status: status === null ? null : status.state,
    turn: value.turn,
    exitCode: Number.isInteger(value.exit_code) ? value.exit_code : null,
    signal: typeof value.signal === 'string' ? value.signal : null,
  };
}

/**
 * How a finished terminal ended, as results show it.
 * @param {Terminal} terminal
 * @returns {{exitCode?: number, signal?: string}}
 */
export function howEnded(terminal) {
  if (terminal.state !== 'finished') return {};
  if (terminal.exitCode !== null) return { exitCode: terminal.exitCode };
  return terminal.signal === null ? {} : { signal: terminal.signal };
}

/** @param {string[]} a @param {string[]} b @returns {boolean} */
export const sameList = (a, b) => a.length === b.length && a.every((item, index) => item === b[index]);

/** @param {Record<string, string>} a @param {Record<string, string>} b @returns {boolean} */
export function sameEntries(a, b) {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}

/**
 * Whether two looks show one and the same incarnation of a terminal.
 * @param {Seen} a @param {Seen} b
 */
export const sameIncarnation = (a, b) =>
  a.coreId === b.coreId &&
  a.terminal.address === b.terminal.address &&
  a.terminal.createdMs === b.terminal.createdMs &&
  sameList(a.terminal.argv, b.terminal.argv);
