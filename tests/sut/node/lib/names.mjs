const LONGEST_NAME = 32;
const RUN_CHARACTERS = 8;
const SPACE_LABEL = 'herdr.space';

/** @param {string[]} characters @returns {string} each one outside [a-z0-9_-] as one dash */
const sanitize = (characters) => characters.map((c) => (/^[a-z0-9_-]$/.test(c) ? c : '-')).join('');

/**
 * D7: the name of a child's terminal.
 * @param {string} runId
 * @param {string} handle
 * @returns {string}
 */
export function terminalName(runId, handle) {
  const run = sanitize([...runId].slice(0, RUN_CHARACTERS));
  return `lgl-${run}-${sanitize([...handle])}`.slice(0, LONGEST_NAME);
}

/**
 * D6: the labels of a child's terminal, and only those.
 * @param {Record<string, string>} parentLabels
 * @returns {Record<string, string>}
 */
export function childLabels(parentLabels) {
  const labels = { 'legion.role': 'centurion' };
  const space = parentLabels[SPACE_LABEL];
  if (typeof space === 'string') labels[SPACE_LABEL] = space;
  return labels;
}
