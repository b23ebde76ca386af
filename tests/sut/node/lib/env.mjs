import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { badRequest } from './failure.mjs';

const INHERITED = ['PATH', 'HOME', 'TERM', 'TERM_PROGRAM', 'COLORTERM'];

/**
 * D2: inside hc, judged by two variables and nothing else.
 * @param {Record<string, string | undefined>} env
 */
export const terminalHostAvailable = (env) => Boolean(env.HC_TERMINAL_SOCKET) && Boolean(env.HC_TERMINAL_ID);

/** @param {string} path @returns {boolean} */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * D3: HC_BIN, the first hc on PATH, ~/.local/bin/hc, bare hc.
 * @param {Record<string, string | undefined>} env
 * @param {(path: string) => boolean} [exists]
 * @returns {string}
 */
export function hcExecutable(env, exists = isProgram) {
  if (env.HC_BIN) return env.HC_BIN;
  const folders = (env.PATH ?? '').split(':').filter((folder) => folder !== '');
  if (env.HOME) folders.push(join(env.HOME, '.local', 'bin'));
  return folders.map((folder) => join(folder, 'hc')).find(exists) ?? 'hc';
}

/**
 * D5: what is laid over the core's environment; the request's own variables last.
 * @param {Record<string, string | undefined>} parent
 * @param {Record<string, string>} memoryEnv
 * @param {Record<string, string | null>} own
 * @returns {Record<string, string>}
 */
export function childEnv(parent, memoryEnv, own) {
  const env = {};
  for (const name of INHERITED) if (parent[name] !== undefined) env[name] = parent[name];
  for (const more of [memoryEnv, own]) {
    for (const [name, value] of Object.entries(more)) {
      if (value === null || value === undefined) continue;
      if (typeof value !== 'string') throw badRequest(`the variable ${name} is no text`);
      if (name === '' || /[=\0]/.test(name)) throw badRequest(`${JSON.stringify(name)} cannot be the name of a variable`);
      if (value.includes('\0')) throw badRequest(`the variable ${name} holds a NUL`);
      env[name] = value;
    }
  }
  return env;
}
