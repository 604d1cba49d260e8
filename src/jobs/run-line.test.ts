import { describe, expect, it } from 'vitest'
import { Cancellation } from '../base/cancellation.ts'
import { msToUs, usToMs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { ClaimedLine, LineAnswer } from '../domain/job.ts'
import type { LineAsk, LineEnd } from '../lifecycle/job-ports.ts'
import { TRIES_MAX, WAIT_MS_MAX } from './job-options.ts'
import { runLine } from './run-line.ts'

const JOB = { id: 'batch_1', caller: '{}', endpoint: '/v1/chat/completions', expiresAtMs: 600_000 }
const TEXT = JSON.stringify({ custom_id: 'a', method: 'POST', url: JOB.endpoint, body: { model: 'm' } })
const LINE: ClaimedLine = { job: { tenantId: 't', id: JOB.id }, no: 4, at: 0, length: 1, attempt: 2, tries: 0 }
const OK: LineEnd = { kind: 'answered', status: 200, body: '{"object":"chat.completion"}' }
const FAILED: LineEnd = { kind: 'answered', status: 500, body: '{}' }
const laterIn = (retryAfterMs: number, status = 429): LineEnd => ({
  kind: 'answered',
  status,
  body: '{}',
  retryAfterMs,
})

/** One line whose tries end as told, one after the other; without an end a try runs until it is cancelled. */
class World {
  readonly clock = new VirtualClock()
  readonly stop = new Cancellation()
  readonly asked: LineAsk[] = []
  /** Milliseconds at which each try began. */
  readonly beganAtMs: number[] = []
  cancelled = 0
  refused = 0
  answer: LineAnswer | undefined | 'none yet' = 'none yet'

  constructor(ends: readonly LineEnd[], over: { line?: Partial<ClaimedLine>; text?: string } = {}) {
    const lines = {
      run: (ask: LineAsk) => {
        const end = ends[Math.min(this.asked.length, ends.length - 1)]
        this.asked.push(ask)
        this.beganAtMs.push(usToMs(this.clock.now()))
        let cancel = (): void => {}
        const done = new Promise<LineEnd>((resolve) => {
          cancel = () => {
            this.cancelled++
            resolve({ kind: 'gone' })
          }
          if (end !== undefined) resolve(end)
        })
        return { done, cancel: () => cancel() }
      },
    }
    const world = { clock: this.clock, lines, onRefused: () => this.refused++, bandNow: () => 'offline' as const }
    void runLine(world, JOB, { ...LINE, ...over.line }, { text: over.text ?? TEXT, stop: this.stop }).then((answer) => {
      this.answer = answer
    })
  }
}

describe('a line', () => {
  it('is answered under its own name, with what it was asked as', async () => {
    const world = new World([OK])
    await world.clock.run()
    expect(world.answer).toMatchObject({ job: LINE.job, no: 4, attempt: 2, isError: false })
    expect(JSON.parse((world.answer as LineAnswer).text)).toEqual({
      id: 'batch_req_1_4',
      custom_id: 'a',
      response: { status_code: 200, request_id: 'batch_req_1_4', body: { object: 'chat.completion' } },
      error: null,
    })
    expect(world.asked).toEqual([
      { job: JOB, ticketId: 'batch_req_1_4', body: '{"model":"m"}', deadlineMs: 600_000, band: 'offline' },
    ])
  })

  it('stops its request when the line is cancelled, and has no answer', async () => {
    const world = new World([])
    await world.clock.run(msToUs(10))
    expect([world.asked.length, world.cancelled, world.answer]).toEqual([1, 0, 'none yet'])
    world.stop.cancel('the job was cancelled')
    await world.clock.run()
    expect([world.cancelled, world.answer]).toEqual([1, undefined])
  })

  it('does not wait for its next try when it is cancelled', async () => {
    const world = new World([laterIn(20_000)])
    await world.clock.run(msToUs(10))
    world.stop.cancel('the job was cancelled')
    await world.clock.run(msToUs(11))
    expect([world.asked.length, world.answer]).toEqual([1, undefined])
    expect(world.clock.pendingCount).toBe(0)
  })

  it('is tried again three times a second apart when engines fail it, each time under another ticket', async () => {
    const world = new World([FAILED])
    await world.clock.run()
    expect(TRIES_MAX).toBe(3)
    expect(world.beganAtMs).toEqual([0, 1_000, 2_000, 3_000])
    expect(world.asked.map(({ ticketId }) => ticketId)).toEqual([
      'batch_req_1_4',
      'batch_req_1_4.1',
      'batch_req_1_4.2',
      'batch_req_1_4.3',
    ])
    expect(world.asked.map(({ deadlineMs }) => deadlineMs)).toEqual([600_000, 599_000, 598_000, 597_000])
    expect(world.answer).toMatchObject({ isError: true })
    expect(world.refused).toBe(0)
  })

  it('has as many tries left after its owner was lost', async () => {
    const world = new World([FAILED], { line: { tries: 2 } })
    await world.clock.run()
    expect(world.asked.map(({ ticketId }) => ticketId)).toEqual([2, 3, 4, 5].map((n) => `batch_req_1_4.${n}`))
  })

  it('comes back as often as it is told to come back later, when it is told to', async () => {
    const world = new World([laterIn(5_000), laterIn(2_000, 503), laterIn(1), laterIn(1), laterIn(1), OK])
    await world.clock.run()
    expect(world.beganAtMs).toEqual([0, 5_000, 7_000, 7_001, 7_002, 7_003])
    expect(world.refused).toBe(5)
    expect(world.answer).toMatchObject({ isError: false })
  })

  it('asks again after half a minute at the latest, whatever it was told', async () => {
    const world = new World([laterIn(10 * WAIT_MS_MAX), OK])
    await world.clock.run()
    expect(world.beganAtMs).toEqual([0, WAIT_MS_MAX])
  })

  it('is answered with an error at once when the same line would fail again', async () => {
    for (const status of [400, 404, 429, 300]) {
      const world = new World([{ kind: 'answered', status, body: '{}' }])
      await world.clock.run()
      expect([world.asked.length, world.answer]).toMatchObject([1, { isError: true }])
    }
  })

  it('has no answer when the window of its job has closed', async () => {
    const world = new World([laterIn(30_000)])
    await world.clock.run()
    expect(world.beganAtMs.at(-1)).toBe(570_000)
    expect(world.asked).toHaveLength(20)
    expect(world.answer).toBeUndefined()
  })

  it('is answered with what is wrong when its file has changed since it was checked', async () => {
    const world = new World([OK], { text: 'not JSON' })
    await world.clock.run()
    expect(world.asked).toEqual([])
    expect(world.answer).toMatchObject({ isError: true })
    expect((world.answer as LineAnswer).text).toContain('invalid_json_line')
  })
})
