import { type BucketOptions, bucketBody, ObjectBucket } from '../aws/http-bucket.ts'
import { readCheckpoint } from './signed-note.ts'
import type { CheckpointSink } from './sink-queue.ts'

/** Longest time for one try. */
const TIMEOUT_MS = 10_000
const CONTENT_TYPE = 'text/plain; charset=utf-8'

/** Sends each checkpoint with POST. */
export function httpSink(url: string, bearer: string | undefined): CheckpointSink {
  const headers = { 'content-type': CONTENT_TYPE, ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) }
  return { name: 'http', send: (note) => sendOnce(url, headers, note) }
}

/** Puts each checkpoint under a name of its own: nothing that is there is ever written again. */
export function bucketSink(options: BucketOptions): CheckpointSink {
  const bucket = new ObjectBucket(options)
  return {
    name: 's3',
    send(note) {
      const { origin = '', size = 0 } = readCheckpoint(note) ?? {}
      const name = `${origin}/${String(size).padStart(15, '0')}.checkpoint`
      return bucket.put(name, bucketBody(note), { 'content-type': CONTENT_TYPE })
    },
  }
}

async function sendOnce(url: string, headers: Record<string, string>, body: string): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  // Loaded by the first call: the package takes as long as a hundred files of ours.
  const { request } = await import('undici')
  const answer = await request(url, { method: 'POST', headers, body, signal })
  await answer.body.dump()
  if (answer.statusCode < 200 || answer.statusCode > 299) throw new Error(`it answered ${answer.statusCode}`)
}
