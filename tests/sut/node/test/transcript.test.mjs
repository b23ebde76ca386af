import assert from 'node:assert/strict';
import test from 'node:test';
import { objectState } from '../lib/json-prefix.mjs';
import { Transcript } from '../lib/transcript.mjs';
import { verdictOfLine, verdictOfText } from '../lib/verdict.mjs';

const HEAD = '{"type":"session","id":"s1"}';
const message = (id, parentId, role, text, more = {}) =>
  JSON.stringify({ type: 'message', id, parentId, message: { role, content: [{ type: 'text', text }], ...more } });
const ask = (id, parentId) => message(id, parentId, 'user', 'please');
const say = (id, parentId, text = 'VERDICT: accept', stopReason = 'stop') => message(id, parentId, 'assistant', text, { stopReason });
const read = (...lines) => new Transcript(Buffer.from(lines.join('\n')));
const verdict = (...lines) => read(...lines).collect().verdict;
const PLAIN = [HEAD, ask('u1', null), say('a1', 'u1')];

test('the answer to the newest prompt counts', () => {
  assert.deepEqual(read(...PLAIN).collect(), { verdict: 'accept', text: 'VERDICT: accept', badLines: 0, stopReason: 'stop' });
  assert.equal(verdict(), 'unknown');
  assert.equal(verdict(...PLAIN, ask('u2', 'a1')), 'unknown');
  assert.equal(verdict(...PLAIN, '{"type":"label","id":"l1","parentId":"a1"}'), 'accept');
  assert.equal(verdict(`\ufeff${PLAIN[0]}\r`, ...PLAIN.slice(1)), 'accept');
});

test('an answer that was cut short, forked, taken back or asks for a tool does not', () => {
  assert.equal(verdict(HEAD, ask('u1', null), say('a1', 'u1', 'VERDICT: accept', 'length')), 'unknown');
  assert.equal(verdict(...PLAIN, say('a2', 'u1', 'VERDICT: accept')), 'unknown');
  assert.equal(verdict(...PLAIN, '{"type":"branch_summary","id":"b","parentId":null}'), 'unknown');
  const edited = read(...PLAIN, '{"type":"context_edit","id":"e","parentId":"a1","targetId":"a1","replacement":null}').collect();
  assert.deepEqual([edited.verdict, edited.text], ['unknown', '']);
  const tool = JSON.stringify({ type: 'message', id: 'a1', parentId: 'u1', message: { role: 'assistant', stopReason: 'stop', content: [{ type: 'text', text: 'VERDICT: accept' }, { type: 'toolCall' }] } });
  assert.equal(read(HEAD, ask('u1', null), tool).collect().text, '');
});

test('a line that shows a prompt, or is mangled inside, stands for one', () => {
  const prompt = ask('u2', 'a1');
  assert.equal(verdict(...PLAIN, prompt.slice(0, prompt.indexOf('please'))), 'unknown');
  assert.equal(verdict(...PLAIN, prompt.slice(prompt.indexOf('"role"'))), 'unknown');
  assert.equal(verdict(...PLAIN, '{"type":"message","id":"u2",\0\0"please"}]}}'), 'unknown');
  assert.equal(verdict(...PLAIN, '{"type":"message","id":"u2"}}'), 'unknown');
});

test('a line that was merely cut does not, nor one that is no record', () => {
  const answer = say('a2', 'a1', 'VERDICT: reject');
  for (const end of [1, 10, 30, answer.length - 1]) assert.equal(verdict(...PLAIN, answer.slice(0, end)), 'accept', String(end));
  assert.equal(verdict(...PLAIN, '{"type":"session_info","id":"x","par'), 'accept');
  assert.equal(verdict(...PLAIN, '\0\0\0'), 'accept');
  assert.equal(read(...PLAIN, answer.slice(0, 30)).collect().badLines, 1);
});

test('what stands before or between whole records', () => {
  assert.equal(verdict(HEAD, 'garbage', ...PLAIN.slice(1)), 'accept');
  const glued = read(HEAD, ask('u1', null) + say('a1', 'u1')).collect();
  assert.deepEqual([glued.verdict, glued.badLines], ['accept', 0]);
  const torn = read(HEAD, '{"type":"mess' + ask('u1', null), say('a1', 'u1')).collect();
  assert.deepEqual([torn.verdict, torn.badLines], ['accept', 1]);
});

test('a whole object, a beginning of one, and neither', () => {
  const whole = ' {"a":[1,-2.5e3,"x\\u00e9\\n",{}],"b":{"c":null,"d":[]}} ';
  assert.equal(objectState(whole), 'whole');
  for (let end = whole.indexOf('{') + 1; end < whole.trimEnd().length; end++) assert.equal(objectState(whole.slice(0, end)), 'cut', whole.slice(0, end));
  for (const text of ['[1]', '1', '{,', '{"a"1', '{"a":01,', '{"a":x', '{"a":1]', '{"a":1,}', '{} {', '{"a":"\n', '{"a":"\\q', '{"a":"\\u12g', '{1']) {
    assert.equal(objectState(text), 'mangled', text);
  }
});

test('another session begins anew, the same header changes nothing', () => {
  assert.equal(verdict(...PLAIN, HEAD), 'accept');
  assert.equal(verdict(...PLAIN, '{"type":"session","id":"s2"}'), 'unknown');
});

test('a prompt that was the newest before a steer is stale', () => {
  const before = read(...PLAIN);
  assert.equal(before.collect(before.prompt.key).verdict, 'unknown');
  assert.equal(read(...PLAIN, ask('u2', 'a1'), say('a2', 'u2')).collect(before.prompt.key).verdict, 'accept');
});

test('whether an answer is still to come', () => {
  assert.equal(read(...PLAIN).unanswered, false);
  assert.equal(read(...PLAIN, ask('u2', 'a1')).unanswered, true);
});

test('what a verdict line is', () => {
  for (const line of ['VERDICT: accept', '   verdict :\tACCEPT.', '**VERDICT: Accept**', '**VERDICT:** accept!', '_VERDICT_: **accept**', '*VERDICT: accept.*']) {
    assert.equal(verdictOfLine(line), 'accept', line);
  }
  for (const line of ['    VERDICT: accept', 'VERDICT: accept it', '* VERDICT: accept', 'VERDICT: accept..', '**VERDICT: accept', 'my VERDICT: accept', 'VERDICT accept']) {
    assert.equal(verdictOfLine(line), null, line);
  }
});

test('lines that contradict each other, and lines of code', () => {
  assert.equal(verdictOfText('VERDICT: accept\nVERDICT: accept').verdict, 'accept');
  assert.equal(verdictOfText('VERDICT: accept\nVERDICT: reject').verdict, 'unknown');
  assert.equal(verdictOfText('```\nVERDICT: reject\n~~~\n```\nVERDICT: accept').verdict, 'accept');
  assert.equal(verdictOfText('~~~ text\nVERDICT: accept').verdict, 'unknown');
});
