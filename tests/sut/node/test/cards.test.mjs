import assert from 'node:assert/strict';
import test from 'node:test';
import { loadCard } from '../lib/cards.mjs';

const card = (front) => loadCard(`---\n${front}\n---\nspawnMode: in the body\n`, 'a.md');

// prettier-ignore
const GOOD = [
  'name: a',
  'name: a\ndescription: spawnMode is # spawnMode: x',
  'd: |\n  spawnMode: x\nname: "q\\u0041"',
  'd: "spawnMode: x"',
  'tools: [a, b, "spawnMode: x"]\nname: z # c',
  'a:\n- b\n- c: d\n  e: f\n-\n  g: h\nname: n',
  '# spawnMode: rpc\nname: c',
  'd: >-\n  foo\n\n  spawnMode: x\nname: \'it\'\'s\'',
  'x: "multi\n  spawnMode: y\n  end"\nname: k',
  'x: {a: spawnMode, b: [spawnMode]}',
  'x: foo\n  bar baz\nname: p',
  'url: http://a:b/c\nname: u',
  '',
  '# only',
  'spawnModes: x',
  'x:\n  - - a\n    - b\n  - c'];
// prettier-ignore
const BAD = [
  'spawnMode: rpc',
  'spawnMode:',
  '"spawnMode": x',"'spawnMode' : x",'a:\n  b:\n    - spawnMode: x',
  'a: {spawnMode: x}',
  'a: {spawnMode}',
  'a: [spawnMode: x]',
  '{"spawnMode":"x"}',
  '"spawn\\u004dode": 1',
  '? spawnMode\n: x',
  '&a spawnMode: x',
  '!!str spawnMode: x',
  'a: &k spawnMode\n*k : v',
  'a: {b: {"spawnMode":null}}',
  'a:\n- - - spawnMode: x',
  'a: [\n  {\n spawnMode: x}]',
  '- spawnMode: ~',
  'a: {b: 1,\n  spawnMode: x}', 'a: [1, 2',
  'x: "open',
  '- spawnMode : y'];

test('D13: the word as a value, a comment, a block text or a part of a word is no key', () => {
  for (const front of GOOD) assert.doesNotThrow(() => card(front), front);
});

test('D13: the key is refused at any depth, in any spelling, with any value', () => {
  for (const front of BAD) assert.throws(() => card(front), (failure) => failure.code === 'card-refused', front);
});

test('the name and the body', () => {
  assert.deepEqual(card('name: "q\\u0041" # c'), { name: 'qA', source: 'a.md', body: 'spawnMode: in the body\n' });
  assert.throws(() => loadCard('---\nname: a\n', 'a.md'), /closing/);
  assert.deepEqual(loadCard('no front matter', 'a.md'), { source: 'a.md', body: 'no front matter' });
});
