import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSqsQueue } from '../../src/jobs/http-sqs-queue.ts'
import type { MessageQueue, SinkAnswer, SourceMessage } from '../../src/lifecycle/message-ports.ts'
import { eventually } from '../support/eventually.ts'
import { MemoryQueue } from '../support/memory-queue.ts'
import { AWS_ENV, type SqsServer, startSqs } from '../support/sqs.ts'

/** What every queue does: the one that tests use in memory, and SQS as its own package asks for it. */
interface OpenedQueue {
  readonly queue: MessageQueue
  readonly put: (text: string) => string
  /** Documents that the sink has. */
  readonly sent: () => string[]
}

let sqs: SqsServer
const before = { ...process.env }
beforeAll(async () => {
  Object.assign(process.env, AWS_ENV)
  sqs = await startSqs()
})
afterAll(async () => {
  for (const name of Object.keys(AWS_ENV)) {
    if (before[name] === undefined) delete process.env[name]
    else process.env[name] = before[name]
  }
  await sqs?.close()
})

let opened = 0
async function openSqs(end = ''): Promise<OpenedQueue> {
  const n = ++opened
  const url = sqs.queue(`asked-${n}`)
  const answers = `answered-${n}${end}`
  const answersUrl = sqs.queue(answers, end === '' ? undefined : { FifoQueue: 'true' })
  const queue = await openSqsQueue({ url, answersUrl, region: 'us-east-1' })
  return { queue, put: (text) => sqs.send(`asked-${n}`, text), sent: () => sqs.messages(answers).texts }
}

async function openMemory(): Promise<OpenedQueue> {
  const queue = new MemoryQueue()
  let n = 0
  return {
    queue,
    put(text) {
      queue.put(`m${++n}`, text)
      return `m${n}`
    },
    sent: () => queue.sent.map(({ document }) => document),
  }
}

const going = new AbortController().signal
const HIDDEN_MS = 30_000

describe.each([
  ['in memory', openMemory],
  ['SQS', openSqs],
])('a queue %s', (_, open) => {
  const using = async (work: (one: OpenedQueue) => Promise<void>): Promise<void> => {
    const one = await open()
    try {
      await work(one)
    } finally {
      one.queue.close()
    }
  }
  const receive = (queue: MessageQueue, limit = 10): Promise<readonly SourceMessage[]> =>
    queue.receive(limit, HIDDEN_MS, going)

  it('gives each message to one receiver, no more than are wanted', () =>
    using(async ({ queue, put }) => {
      const ids = Array.from({ length: 7 }, (_, n) => put(`text ${n}`))
      const first = await receive(queue, 3)
      expect(first.length).toBeLessThanOrEqual(3)
      const seen = [...first]
      while (seen.length < 7) seen.push(...(await receive(queue)))
      expect(seen.map(({ id }) => id).sort()).toEqual(ids.sort())
      expect(seen.map(({ text }) => text).sort()).toEqual(Array.from({ length: 7 }, (_, n) => `text ${n}`))
      expect(seen.every(({ receives }) => receives === 1)).toBe(true)
    }))

  it('gives a message again that is not hidden any more, and counts', () =>
    using(async ({ queue, put }) => {
      const id = put('x')
      const [one] = await receive(queue)
      await queue.hide([one!], 0)
      const [again] = await receive(queue)
      expect(again).toMatchObject({ id, text: 'x', receives: 2 })
      await queue.remove([again!])
      const other = put('y')
      expect(await receive(queue)).toMatchObject([{ id: other }])
    }))

  it('removes and hides many at once', () =>
    using(async ({ queue, put }) => {
      for (let n = 0; n < 23; n++) put('x')
      const all: SourceMessage[] = []
      while (all.length < 23) all.push(...(await receive(queue)))
      await queue.hide(all, HIDDEN_MS)
      await queue.remove(all)
      const last = put('last')
      expect(await receive(queue)).toMatchObject([{ id: last, receives: 1 }])
    }))

  it('stops waiting when it is told to', () =>
    using(async ({ queue }) => {
      const stop = new AbortController()
      const waiting = queue.receive(1, HIDDEN_MS, stop.signal)
      stop.abort()
      expect(await waiting).toEqual([])
    }))

  it('takes answers, also many and large ones, and says which', () =>
    using(async ({ queue, sent }) => {
      const document = (n: number) => JSON.stringify({ n, text: 'é'.repeat(n % 3 === 0 ? 60_000 : 10) })
      const answers: SinkAnswer[] = Array.from({ length: 14 }, (_, n) => ({ id: `a${n}`, document: document(n) }))
      const largest = { id: 'largest', document: JSON.stringify('x'.repeat(queue.bytesMax - 2)) }
      const taken = await queue.send([...answers, largest])
      expect([...taken].sort()).toEqual([...answers, largest].map(({ id }) => id).sort())
      expect(sent().sort()).toEqual([...answers, largest].map((answer) => answer.document).sort())
    }))

  it('takes any text that an answer may have', () =>
    using(async ({ queue, sent }) => {
      // Characters beyond the basic plane are left out: SQS takes them, its stand-in does not.
      const value = 'a\u0001\uFFFF\uFFFE\uD83D \u2028'
      expect(await queue.send([{ id: 'a', document: JSON.stringify({ value }) }])).toEqual(['a'])
      expect(sent().map((text) => (JSON.parse(text) as { value: string }).value)).toEqual([value])
    }))
})

it('a queue of SQS that keeps its order has an answer once that was sent twice', async () => {
  const { queue, sent } = await openSqs('.fifo')
  const answer = { id: 'a', document: '{}' }
  for (let n = 0; n < 2; n++) expect(await queue.send([answer])).toEqual(['a'])
  await queue.send([{ id: 'b', document: '[]' }])
  await eventually('both are there', () => sent().length === 2)
  queue.close()
})
