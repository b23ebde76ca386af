import { Failure } from './failure.mjs';
import { parseYaml } from './yaml.mjs';

const FORBIDDEN = 'spawnMode';
const MARK = /^---[ \t]*$/;

/**
 * Whether a key stands anywhere in a node, in keys that are collections too.
 * @param {import('./yaml.mjs').Node} node
 * @param {string} name
 * @returns {boolean}
 */
export function hasKey(node, name) {
  const inside = (other) => hasKey(other, name);
  const entries = node.entries ?? [];
  return entries.some(([key, value]) => key.scalar === name || inside(key) || inside(value)) || (node.items ?? []).some(inside);
}

/**
 * D13: read an agent card.
 * @param {string} text
 * @param {string} source name of its file, for messages
 * @returns {{name?: string, source: string, body: string}}
 */
export function loadCard(text, source) {
  const refuse = (why) => new Failure('card-refused', `${source}: ${why}`);
  const lines = text.replace(/^\ufeff/, '').replace(/\r\n?/g, '\n').split('\n');
  if (!MARK.test(lines[0])) return { source, body: text };
  const end = lines.findIndex((line, index) => index > 0 && MARK.test(line));
  if (end < 0) throw refuse('its front matter has no closing ---');
  let front;
  try {
    front = parseYaml(lines.slice(1, end).join('\n'));
  } catch (error) {
    throw refuse(`its front matter cannot be read: ${error.message}`);
  }
  if (hasKey(front, FORBIDDEN)) throw refuse(`its front matter sets ${FORBIDDEN}, which no card may`);
  const name = (front.entries ?? []).find(([key]) => key.scalar === 'name')?.[1].scalar;
  return { ...(typeof name === 'string' ? { name } : {}), source, body: lines.slice(end + 1).join('\n') };
}
