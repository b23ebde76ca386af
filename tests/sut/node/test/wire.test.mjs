import assert from 'node:assert/strict';
import test from 'node:test';
import { beginsLikeJson, normalKind, readFrame } from '../lib/frames.mjs';
import { LineSplitter } from '../lib/lines.mjs';

const frame = (text) => readFrame(Buffer.from(text));

test('lines end at 0A and nowhere else', () => {
  const splitter = new LineSplitter();
  const lines = [];
  for (const piece of ['a\u2028b\r', '\n\nc', 'd']) lines.push(...splitter.push(Buffer.from(piece)));
  assert.deepEqual(lines.map(String), ['a\u2028b\r', '']);
  assert.equal(String(splitter.rest()), 'cd');
});

test('a line above the limit is refused, one at the limit is not', () => {
  assert.deepEqual([...new LineSplitter(4).push(Buffer.from('abcd\n'))].map(String), ['abcd']);
  assert.throws(() => [...new LineSplitter(4).push(Buffer.from('abcde'))], RangeError);
});

test('answers, errors and what belongs to nobody', () => {
  assert.deepEqual(frame('{"jsonrpc":"2.0","id":1,"result":{"a":1}}'), { type: 'answer', id: 1, result: { a: 1 } });
  assert.deepEqual(frame('{"id":"1","result":{},"error":null}'), { type: 'answer', id: 1, result: {} });
  assert.equal(frame('{"id":"01","result":{}}').type, 'other');
  assert.deepEqual(frame('{"id":1,"result":null}'), { type: 'answer', id: 1, result: {} });
  assert.equal(frame('{"id":1,"error":{"message":"no"}}').error.message, 'no');
  assert.equal(frame('{"id":1}').broken, true);
  assert.equal(frame('{"id":null,"error":{"message":"no"}}').type, 'orphan');
  assert.equal(frame('{"method":"terminal.changed","params":{}}').type, 'other');
  assert.equal(frame('hello').type, 'noise');
  assert.equal(frame('[1]').type, 'noise');
});

test('a mark or a terminal sequence around an answer is passed over', () => {
  for (const [before, after] of [['\ufeff', ''], ['\x1b[2K', '\x1b[0m\r'], ['\x1b]0;title\x07', '']]) {
    assert.equal(frame(`${before}{"id":7,"result":{}}${after}`).id, 7);
  }
});

test('a long line of blanks is read in no time', () => {
  const begin = Date.now();
  assert.equal(frame(`x${' '.repeat(4_000_000)}x`).type, 'noise');
  assert.ok(Date.now() - begin < 1_000);
});

test('what may be a frame without its end', () => {
  assert.equal(beginsLikeJson(Buffer.from('\x1b[2K{"id":7,"resu')), true);
  assert.equal(beginsLikeJson(Buffer.from('bye')), false);
});

test('kinds are compared in one spelling', () => {
  assert.equal(normalKind('NAME-TAKEN'), 'name_taken');
  assert.equal(normalKind(7), '');
});
