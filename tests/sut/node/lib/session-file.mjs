import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { now, sleep } from './time.mjs';
import { Transcript } from './transcript.mjs';

const READ_AGAIN_MS = 500;
const READ_REST_MS = 50;

/**
 * @param {string} path
 * @returns {Promise<Transcript>} an empty one when there is no such file, or it is none
 */
export async function readSession(path) {
  let file;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return new Transcript((await file.stat()).isFile() ? await file.readFile() : Buffer.alloc(0));
  } catch {
    return new Transcript(Buffer.alloc(0));
  } finally {
    await file?.close();
  }
}

/**
 * The verdict of a session, read again for a while as long as its newest entry is a prompt without an answer.
 * @param {string} path
 * @param {() => string | null} stale key of a prompt whose answer no longer counts
 */
export async function collectVerdict(path, stale) {
  const end = now() + READ_AGAIN_MS;
  let transcript = await readSession(path);
  while (transcript.unanswered && now() + READ_REST_MS <= end) {
    await sleep(READ_REST_MS);
    transcript = await readSession(path);
  }
  return transcript.collect(stale());
}
