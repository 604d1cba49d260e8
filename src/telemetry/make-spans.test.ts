import { describe, expect, it } from 'vitest'
import { finished, lost } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import { makeSpans } from './make-spans.ts'
import { otlpTraces } from './otlp-json.ts'
import { SpanSampler } from './span-sampler.ts'

const trace = { traceId: 'a'.repeat(32), parentId: 'b'.repeat(16), isSampled: true }

/** The entries of one ticket that was tried again at a second replica. */
async function retried(isTraced = true): Promise<Entry[]> {
  const { world } = await VirtualWorld.scripted([lost(0), finished(5)], { replicas: 2 })
  const { done, request } = world.serve(isTraced ? { trace } : {})
  await world.run()
  await done
  return world.entries.filter((entry) => 'ticketId' in entry && entry.ticketId === request.id)
}

describe('makeSpans', () => {
  it('tells the story of a ticket, each attempt by itself, inside the caller’s trace', async () => {
    const spans = makeSpans(await retried())
    expect(spans.map(({ name }) => name)).toEqual(['chat sim', 'wait', 'attempt', 'attempt', 'prefill', 'decode'])
    const [request, wait, first, second, prefill, decode] = spans
    expect(spans.every(({ traceId }) => traceId === trace.traceId)).toBe(true)
    expect(request).toMatchObject({ parentId: trace.parentId, kind: 'server', error: undefined })
    expect([wait, first, second].map((span) => span?.parentId)).toEqual(Array(3).fill(request?.spanId))
    expect([prefill, decode].map((span) => span?.parentId)).toEqual(Array(2).fill(second?.spanId))
    expect(first?.error).toBeDefined()
    expect(second?.error).toBeUndefined()
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
    for (const { startAt, endAt } of spans) {
      expect(startAt).toBeGreaterThanOrEqual(request!.startAt)
      expect(endAt).toBeLessThanOrEqual(request!.endAt)
    }
    expect(prefill?.endAt).toBe(decode?.startAt)
  })

  it('has an id of its own where the caller named none, and is nothing for a ticket that has not ended', async () => {
    const story = await retried(false)
    const [request] = makeSpans(story)
    expect(request).toMatchObject({ parentId: undefined })
    expect(request?.traceId).toMatch(/^[0-9a-f]{32}$/)
    expect(makeSpans(story.slice(0, -1))).toEqual([])
  })

  it('is OTLP as collectors read it', async () => {
    const spans = makeSpans(await retried())
    const read = JSON.parse(otlpTraces(spans, { version: '1', instanceId: 'here' })) as {
      resourceSpans: { scopeSpans: { spans: Record<string, unknown>[] }[] }[]
    }
    const [first] = read.resourceSpans[0]?.scopeSpans[0]?.spans ?? []
    expect(first).toMatchObject({ kind: 2, traceId: trace.traceId, parentSpanId: trace.parentId })
    expect(first?.['startTimeUnixNano']).toMatch(/^\d+000$/)
    expect(JSON.stringify(first)).toContain('{"key":"gen_ai.usage.output_tokens","value":{"intValue":"5"}}')
    expect(JSON.stringify(read)).not.toContain('null')
  })
})

describe('SpanSampler', () => {
  const settledIn = (story: readonly Entry[]): Settled => story.find((entry) => entry.kind === 'settled') as Settled

  it('takes what the caller samples, all that went wrong, and a share of the rest', async () => {
    const story = await retried()
    const plain = await retried(false)
    const taken = (ratio: number, of: readonly Entry[], more: Partial<Settled> = {}): boolean => {
      const sampler = new SpanSampler({ ratio })
      sampler.take(of, { ...settledIn(of), isKept: true, ...more })
      return sampler.view().made > 0
    }
    expect(taken(0, story)).toBe(true)
    expect(taken(0, plain)).toBe(false)
    expect(taken(1, plain)).toBe(true)
    expect(taken(0, plain, { isKept: false })).toBe(true)
    expect(taken(0, plain, { outcome: 'rejected', isKept: undefined })).toBe(true)
    const unsampled = story.map((entry) =>
      entry.kind === 'arrived' ? { ...entry, trace: { ...trace, isSampled: false } } : entry,
    )
    expect(taken(1, unsampled)).toBe(false)
  })

  it('keeps no more than it may, and counts the rest', async () => {
    const story = await retried()
    const sampler = new SpanSampler({ ratio: 1, spansMax: 10 })
    for (let i = 0; i < 5; i++) sampler.take(story, settledIn(story))
    expect(sampler.view()).toEqual({ made: 30, dropped: 24, waiting: 6 })
    expect(sampler.shift(4)).toHaveLength(4)
    sampler.lose(4)
    expect(sampler.view()).toEqual({ made: 30, dropped: 28, waiting: 2 })
  })
})
