import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { VirtualClock } from '../../src/base/virtual-clock.ts'
import { HIDDEN_MS, QueueRunner } from '../../src/jobs/run-queue.ts'
import type { LineAsk, LineEnd, LineRunner } from '../../src/lifecycle/job-ports.ts'
import type { MessageStore } from '../../src/lifecycle/message-ports.ts'
import { SqlFileBytes } from '../../src/store/sql-file-bytes.ts'
import { SqlJobStore } from '../../src/store/sql-job-store.ts'
import { SqlMessageStore } from '../../src/store/sql-message-store.ts'
import { type OpenedDatabase, SQL_DATABASES } from '../support/databases.ts'
import { eventually } from '../support/eventually.ts'
import { jobLines } from '../support/job-gateway.ts'
import { MemoryQueue } from '../support/memory-queue.ts'

/** Messages on a real store, with a queue in memory and lines that end as a test wants. */
const OK: LineEnd = { kind: 'answered', status: 200, body: '{"object":"chat.completion"}' }
const never = new Promise<LineEnd>(() => {})
const [LINE = ''] = jobLines(1)

let opened: OpenedDatabase
let store: SqlMessageStore
beforeAll(async () => {
  opened = await SQL_DATABASES[0]!.open()
  store = new SqlMessageStore(opened.database!)
  await store.keptAnswers({ tenantId: 'a', queueId: 'none' }, ['x'])
}, 60_000)
afterAll(() => opened?.close())

const runners: QueueRunner[] = []
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.close()
})

interface Setting {
  readonly queue: MemoryQueue
  readonly queueId: string
  readonly end?: (ask: LineAsk, nth: number) => LineEnd | Promise<LineEnd>
  readonly store?: MessageStore
  readonly clock?: Clock
  readonly tenantOf?: () => { tenantId: string } | { because: string }
  readonly terms?: { readonly runningMax?: number; readonly receivesMax?: number; readonly windowMs?: number }
}

/** A process that reads the queue. `faults`: what it told of. */
function start({ queue, queueId, end = () => OK, clock = new LiveClock(), ...more }: Setting) {
  const asked: LineAsk[] = []
  const faults: unknown[] = []
  const lines: LineRunner = {
    run(ask) {
      asked.push(ask)
      let cancel = (): void => {}
      const gone = new Promise<LineEnd>((resolve) => {
        cancel = () => resolve({ kind: 'gone' })
      })
      return { done: Promise.race([gone, Promise.resolve(end(ask, asked.length))]), cancel }
    },
  }
  const files = { clock, store: new SqlJobStore(opened.database!), files: new SqlFileBytes(opened.database!) }
  const runner = new QueueRunner({
    clock,
    queue,
    store: more.store ?? store,
    lines,
    files,
    terms: { id: queueId, caller: '{}', runningMax: 8, receivesMax: 3, windowMs: 3_600_000, ...more.terms },
    tenantOf: more.tenantOf ?? (() => ({ tenantId: 'a' })),
    isLeaving: () => false,
    complain: (problem) => faults.push(problem),
    onFault: (_, error) => faults.push(error),
  })
  runner.start()
  runners.push(runner)
  return { runner, asked, faults }
}

const documents = (queue: MemoryQueue) =>
  queue.sent.map(({ document }) => JSON.parse(document) as Record<string, unknown>)
const removed = (queue: MemoryQueue, count: number) =>
  eventually(`${count} messages are removed`, () => queue.removed.length >= count)

/** The world of a process that is killed when it calls `call`, before or after it is done: nothing more is done there. */
function dying(queue: MemoryQueue, call: keyof MessageStore, when: 'before' | 'after') {
  const died = new AbortController()
  const never = new Promise<never>(() => {})
  const mortal = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return async (...args: unknown[]): Promise<unknown> => {
          if (name === call && when === 'before') died.abort()
          if (died.signal.aborted) return never
          const done: unknown = await Reflect.apply(
            value,
            target,
            name === 'receive' ? [...args.slice(0, 2), died.signal] : args,
          )
          if (name === call) died.abort()
          return died.signal.aborted ? never : done
        }
      },
    })
  return { queue: mortal(queue), store: mortal<MessageStore>(store), isDead: () => died.signal.aborted }
}

describe('messages of a queue', { timeout: 60_000 }, () => {
  it('are run, answered once and removed, no more at once than may run', async () => {
    const queue = new MemoryQueue()
    const lines = [...jobLines(40)]
    for (const [n, line] of lines.entries()) queue.put(`m${n}`, line)
    let running = 0
    let most = 0
    const { asked } = start({
      queue,
      queueId: 'plain',
      async end() {
        most = Math.max(most, ++running)
        await Promise.resolve()
        running--
        return OK
      },
    })
    await removed(queue, 40)
    expect(most).toBeLessThanOrEqual(8)
    const told = documents(queue)
    expect(told.map((one) => String(one['custom_id'])).sort()).toEqual(lines.map((_, n) => `line-${n}`).sort())
    expect(told[0]).toMatchObject({ response: { status_code: 200 }, error: null })
    expect(asked[0]).toMatchObject({ ticketId: 'queue_req_plain-m0', job: { endpoint: '/v1/chat/completions' } })
  })

  it.each([
    ['keepAnswers', 'before', 2],
    ['keepAnswers', 'after', 1],
    ['markSent', 'before', 1],
    ['markSent', 'after', 1],
    ['markRemoved', 'before', 1],
  ] as const)('of a process that is killed %s, %s, are answered by the next', async (call, when, runs) => {
    const queue = new MemoryQueue()
    const queueId = `killed-${call.toLowerCase()}-${when}`
    queue.put('m', LINE)
    const { isDead, ...mortal } = dying(queue, call, when)
    const first = start({ queueId, ...mortal })
    await eventually('the first process is dead', isDead)
    runners.splice(0)
    queue.pass(HIDDEN_MS)
    const second = start({ queue, queueId, end: () => ({ ...OK, body: '{"second":true}' }) })
    await removed(queue, 1)
    expect(first.asked.length + second.asked.length).toBe(runs)
    // It is charged once: both runs have one ticket.
    expect(new Set([...first.asked, ...second.asked].map(({ ticketId }) => ticketId)).size).toBe(1)
    const bodies = documents(queue).map((one) => (one['response'] as { body: object }).body)
    // Between the sending and its mark nobody can know: the same answer goes twice, under the same id.
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1)
    expect(queue.sent.length).toBe(call === 'markSent' && when === 'before' ? 2 : 1)
    expect(new Set(queue.sent.map(({ id }) => id))).toEqual(new Set(['m']))
  })

  it('between an answer that was sent and their removal are only removed', async () => {
    const queue = new MemoryQueue()
    queue.put('m', LINE)
    let failures = 0
    queue.onCall = (call) => {
      if (call === 'remove' && failures++ < 2) throw new Error('away')
    }
    const { asked, faults } = start({ queue, queueId: 'kept' })
    await removed(queue, 1)
    expect([asked.length, queue.sent.length, faults.length]).toEqual([1, 1, 2])
  })

  it('stay hidden while their lines run, and are given back at the end', async () => {
    const clock = new VirtualClock()
    const queue = new MemoryQueue()
    queue.put('m', LINE)
    const { runner, asked } = start({ queue, queueId: 'hidden', end: () => never, clock })
    await eventually('the line runs', () => asked.length === 1)
    for (let passed = 0; passed < 10 * HIDDEN_MS; passed += 10_000) {
      queue.pass(10_000)
      await clock.run(clock.now() + 10_000_000)
      expect(queue.hiddenMs()['m']).toBeGreaterThan(HIDDEN_MS / 2)
    }
    expect(asked.length).toBe(1)
    await runner.close()
    expect(queue.hiddenMs()).toEqual({ m: 0 })
    expect(queue.sent).toEqual([])
  })

  it('that come again while they run are not run again, and the newest delivery is removed', async () => {
    const queue = new MemoryQueue()
    queue.put('m', LINE)
    let letGo: (end: LineEnd) => void = () => {}
    const held = new Promise<LineEnd>((resolve) => {
      letGo = resolve
    })
    const { asked } = start({ queue, queueId: 'again', end: () => held })
    await eventually('the line runs', () => asked.length === 1)
    queue.pass(2 * HIDDEN_MS)
    await eventually('it is delivered again', () => (queue.hiddenMs()['m'] ?? 0) > 0)
    letGo(OK)
    await removed(queue, 1)
    expect([asked.length, queue.sent.length]).toEqual([1, 1])
  })

  it.each([
    ['that are no JSON', '{', 'invalid_json_line'],
    ['without a body', '{"custom_id":"a","method":"POST","url":"/v1/chat/completions"}', 'missing_required_parameter'],
    ['for another endpoint', LINE.replace('/v1/chat/completions', '/admin/v1/keys'), 'invalid_url'],
  ])('%s are answered with an error, and do not come for ever', async (name, text, code) => {
    const queue = new MemoryQueue()
    queue.put('m', text)
    const { asked } = start({ queue, queueId: `bad-${name.length}` })
    await removed(queue, 1)
    expect(asked).toEqual([])
    expect(documents(queue)).toMatchObject([{ response: null, error: { code } }])
  })

  it('that were delivered too often are answered with an error and not run', async () => {
    const queue = new MemoryQueue()
    queue.put('m', LINE)
    const stop = new AbortController().signal
    for (let n = 0; n < 3; n++) {
      await queue.receive(1, HIDDEN_MS, stop)
      queue.pass(HIDDEN_MS)
    }
    const { asked } = start({ queue, queueId: 'often' })
    await removed(queue, 1)
    expect(asked).toEqual([])
    expect(documents(queue)).toMatchObject([{ custom_id: 'line-0', error: { code: 'too_many_receives' } }])
  })

  it('that are refused for now come back when they are told to', async () => {
    const queue = new MemoryQueue()
    queue.put('m', LINE)
    const refused: LineEnd = { kind: 'answered', status: 429, body: '{}', retryAfterMs: 1 }
    const { asked } = start({ queue, queueId: 'refused', end: (_, nth) => (nth < 3 ? refused : OK) })
    await removed(queue, 1)
    expect(asked.length).toBe(3)
  })

  it('that are refused for longer than their window are answered so', async () => {
    const queue = new MemoryQueue()
    queue.put('m', LINE)
    const refused: LineEnd = { kind: 'answered', status: 429, body: '{}', retryAfterMs: 5 }
    start({ queue, queueId: 'late', end: () => refused, terms: { windowMs: 1 } })
    await removed(queue, 1)
    expect(documents(queue)).toMatchObject([{ custom_id: 'line-0', error: { code: 'batch_expired' } }])
  })

  it('whose answers the sink does not take hold no place for ever', async () => {
    const clock = new VirtualClock()
    const queue = new MemoryQueue()
    queue.put('bad', LINE)
    queue.refuses = ({ id }) => id === 'bad'
    const { faults, asked } = start({ queue, queueId: 'sink', clock, terms: { runningMax: 1 } })
    await eventually('it is left', async () => {
      await clock.run(clock.now() + 1_000_000)
      return faults.length > 0
    })
    expect(String(faults[0])).toContain('does not take the answer of bad')
    queue.put('good', LINE)
    await eventually('the next one is answered', async () => {
      await clock.run(clock.now() + 1_000_000)
      return queue.removed.includes('good')
    })
    expect(asked.length).toBe(2)
  })

  it('whose answer is larger than a message may be have it in a file', async () => {
    const queue = new MemoryQueue()
    queue.bytesMax = 1_000
    queue.put('m', LINE)
    start({ queue, queueId: 'large', end: () => ({ ...OK, body: JSON.stringify({ text: 'é'.repeat(600) }) }) })
    await removed(queue, 1)
    const [told] = documents(queue)
    expect(told).toMatchObject({
      custom_id: 'line-0',
      error: { code: 'answer_too_large' },
      output_file_id: 'file-output-large-m',
    })
    const files = new SqlFileBytes(opened.database!)
    const text = Buffer.from(await files.read('file-output-large-m', 0, 1e6)).toString()
    expect(JSON.parse(text)).toMatchObject({ custom_id: 'line-0', response: { body: { text: 'é'.repeat(600) } } })
    const row = await new SqlJobStore(opened.database!).findFile('a', 'file-output-large-m')
    expect(row).toMatchObject({ bytes: Buffer.byteLength(text), purpose: 'batch_output' })
  })

  it('wait while the key opens nothing, which is told once', async () => {
    const clock = new VirtualClock()
    const queue = new MemoryQueue()
    queue.put('m', LINE)
    let isOpen = false
    const tenantOf = () => (isOpen ? { tenantId: 'a' } : { because: 'it is revoked' })
    const { faults } = start({ queue, queueId: 'closed', tenantOf, clock })
    for (let n = 0; n < 30; n++) await clock.run(clock.now() + 1_000_000)
    expect(faults).toEqual(['the queue closed is not read: it is revoked. Its messages wait'])
    expect(queue.hiddenMs()).toEqual({ m: 0 })
    isOpen = true
    await eventually('it is answered', async () => {
      await clock.run(clock.now() + 1_000_000)
      return queue.removed.length === 1
    })
  })

  it('are forgotten when nobody asks for them any more', async () => {
    const ref = { tenantId: 'a', queueId: 'swept' }
    const answers = ['removed', 'young', 'lost'].map((id) => ({ id, document: '{}' }))
    await store.keepAnswers(ref, answers, 1_000)
    await store.markSent(ref, ['removed'])
    await store.markRemoved(ref, ['removed'], 1_000)
    await store.keepAnswers(
      ref,
      [
        { id: 'young', document: '"other"' },
        { id: 'new', document: '{}' },
      ],
      5_000,
    )
    const idsLeft = async () =>
      (await store.keptAnswers(ref, ['removed', 'young', 'lost', 'new'])).map(({ id }) => id).sort()
    expect(await store.keptAnswers(ref, ['young'])).toEqual([{ id: 'young', document: '{}' }])
    expect(await store.sweepMessages({ removedBeforeMs: 2_000, createdBeforeMs: 0, limit: 10 })).toBe(1)
    expect(await idsLeft()).toEqual(['lost', 'new', 'young'])
    expect(await store.sweepMessages({ removedBeforeMs: 9_000, createdBeforeMs: 2_000, limit: 1 })).toBe(1)
    expect(await store.sweepMessages({ removedBeforeMs: 9_000, createdBeforeMs: 2_000, limit: 9 })).toBe(1)
    expect(await idsLeft()).toEqual(['new'])
  })
})
