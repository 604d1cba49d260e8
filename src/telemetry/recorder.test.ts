import { describe, expect, it } from 'vitest'
import { arrived, settled } from '../../test/support/entries.ts'
import type { Arrived, Settled } from '../domain/entry.ts'
import { RECORDINGS_MAX, Recorder, type RecordingOut } from './recorder.ts'
import type { Renaming } from './recording-line.ts'

const RENAMING: Renaming = { blocks: (hashes) => hashes.map((hash) => hash + 1), session: (hash) => hash + 2 }

const SHAPE: NonNullable<Arrived['shape']> = {
  kind: 'chat',
  bid: 0,
  outputTokensMax: 200,
  choiceCount: 1,
  prefixHashes: [10, 11],
  sessionHash: 5,
  passagesMax: 0,
}

/** An output with room for this many lines; the test reads and empties it. */
class Lines implements RecordingOut {
  readonly lines: string[] = []
  room: number
  isEnded = false

  constructor(room = Number.POSITIVE_INFINITY) {
    this.room = room
  }

  write(line: string): boolean {
    if (this.lines.length >= this.room) return false
    this.lines.push(line)
    return true
  }

  end(): void {
    this.isEnded = true
  }

  get objects(): Array<Record<string, unknown>> {
    return this.lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  }
}

function send(recorder: Recorder, id: string, more: Partial<Settled> = {}, shape: Partial<typeof SHAPE> = {}): void {
  recorder.take(arrived({ ticketId: id, at: 2_000_000, shape: { ...SHAPE, ...shape } }))
  recorder.take(settled({ ticketId: id, arrivedAt: 2_000_000, ...more }))
}

describe('the recorder', () => {
  it('writes a header, then a line per request with lengths, names and times, then an end', () => {
    const out = new Lines()
    const recorder = new Recorder({ renaming: RENAMING })
    const stop = recorder.begin(out, 1_500_000)
    send(recorder, 'a')
    stop?.()
    const [header, request, end] = out.objects
    expect(header).toEqual({
      spillway: 'recording',
      version: 1,
      startedAt: '1970-01-01T00:00:01.500Z',
      blockTokens: 16,
    })
    const last = settled()
    expect(request).toMatchObject({
      atUs: 500_000,
      tenant: 'acme',
      model: 'llama-8b',
      band: 'interactive',
      prompt: last.usage.promptTokens,
      max: 200,
      output: last.usage.outputTokens,
      prefix: [11, 12],
      session: 7,
      outcome: 'completed',
    })
    expect(end).toEqual({ end: true })
    expect(out.isEnded).toBe(true)
  })

  it('writes no reason, no id and no key, which are the only free words of an entry', () => {
    const out = new Lines()
    const recorder = new Recorder({ renaming: RENAMING })
    recorder.begin(out, 0)
    const refusal = { code: 'lane-full', because: 'SECRET', blame: 'tenant', retryAfterUs: 1 } as const
    send(recorder, 'id-SECRET', { because: 'SECRET', keyId: 'SECRET', refusal, outcome: 'rejected' })
    expect(out.lines.join('')).not.toContain('SECRET')
    expect(out.objects[1]).toMatchObject({ outcome: 'rejected', code: 'lane-full' })
  })

  it('takes the estimate of a prompt that was trimmed or refused, and the engine’s count of a whole one', () => {
    const out = new Lines()
    const recorder = new Recorder({ renaming: RENAMING })
    recorder.begin(out, 0)
    const usage = { promptTokens: 40, cachedTokens: 16, outputTokens: 9 }
    send(recorder, 'whole', { usage })
    send(recorder, 'trimmed', { usage, rung: 'trim-context' })
    expect(out.objects.slice(1).map(({ prompt }) => prompt)).toEqual([40, 100])
    expect(out.objects[1]).toMatchObject({ cached: 16 })
  })

  it('leaves out errands, and requests that arrived before it began', () => {
    const out = new Lines()
    const recorder = new Recorder({ renaming: RENAMING })
    recorder.begin(out, 2_000_001)
    send(recorder, 'early')
    recorder.take(arrived({ ticketId: 'errand', at: 3_000_000 }))
    recorder.take(settled({ ticketId: 'errand', arrivedAt: 3_000_000 }))
    expect(out.lines).toHaveLength(1)
  })

  it('marks an answer of the answer cache, with the length of the saved answer', () => {
    const out = new Lines()
    const recorder = new Recorder({ renaming: RENAMING })
    recorder.begin(out, 0)
    recorder.take(arrived({ ticketId: 'a', shape: SHAPE }))
    recorder.take({
      kind: 'answer-looked-up',
      at: 1,
      ticketId: 'a',
      tenantId: 'acme',
      outcome: 'hit',
      similarity: 1,
      tookUs: 1,
      saved: { promptTokens: 90, cachedTokens: 0, outputTokens: 77 },
      because: '',
    })
    recorder.take(settled({ ticketId: 'a', usage: { promptTokens: 0, cachedTokens: 0, outputTokens: 0 } }))
    expect(out.objects[1]).toMatchObject({ output: 77, isRepeated: true, prompt: 100 })
  })

  it('counts lines that found no room, and says so before the next that does', () => {
    const out = new Lines(2)
    const recorder = new Recorder({ renaming: RENAMING })
    recorder.begin(out, 0)
    for (const id of ['a', 'b', 'c']) send(recorder, id)
    expect(out.lines).toHaveLength(2)
    out.room = 10
    send(recorder, 'd')
    expect(out.objects.slice(2)).toEqual([{ lost: 2 }, expect.objectContaining({ tenant: 'acme' })])
  })

  it('bounds the requests that it remembers: the oldest is lost and counted', () => {
    const out = new Lines()
    const recorder = new Recorder({ renaming: RENAMING, openMax: 2 })
    recorder.begin(out, 0)
    for (const id of ['a', 'b', 'c']) recorder.take(arrived({ ticketId: id, shape: SHAPE }))
    for (const id of ['a', 'b', 'c']) recorder.take(settled({ ticketId: id }))
    expect(out.objects.slice(1).map((line) => ('lost' in line ? line['lost'] : 'request'))).toEqual([
      1,
      'request',
      'request',
    ])
  })

  it('says which entries the journal lost for it', () => {
    const out = new Lines()
    let missed = 3
    const recorder = new Recorder({ renaming: RENAMING, missedEntries: () => missed })
    recorder.begin(out, 0)
    recorder.flush()
    expect(out.lines).toHaveLength(1)
    missed = 8
    recorder.flush()
    expect(out.objects[1]).toEqual({ lost: 5 })
  })

  it('bounds the recordings, and remembers nothing while there is none', () => {
    const recorder = new Recorder({ renaming: RENAMING })
    const stops = Array.from({ length: RECORDINGS_MAX }, () => recorder.begin(new Lines(), 0))
    expect(recorder.begin(new Lines(), 0)).toBeUndefined()
    recorder.take(arrived({ ticketId: 'a', shape: SHAPE }))
    for (const stop of stops) stop?.()
    const out = new Lines()
    recorder.begin(out, 0)
    recorder.take(settled({ ticketId: 'a' }))
    expect(out.lines).toHaveLength(1)
  })

  it('ends every recording at once when the process does', () => {
    const outs = [new Lines(), new Lines()]
    const recorder = new Recorder({ renaming: RENAMING })
    for (const out of outs) recorder.begin(out, 0)
    recorder.endAll()
    expect(outs.map(({ objects, isEnded }) => [objects.at(-1), isEnded])).toEqual([
      [{ end: true }, true],
      [{ end: true }, true],
    ])
  })
})
