import { describe, expect, it } from 'vitest'
import { finished } from '../../test/support/scripted-backend.ts'
import { type Served, VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Clock } from '../base/clock.ts'
import { msToUs } from '../base/clock.ts'
import type { Passage } from '../domain/corpus.ts'
import type { RetrievalAsk, Retrieved, Retriever } from './retrieval-ports.ts'

/** The whole story of a request on virtual time, with retrieval that is quick, slow, dead or mad. */

const passage = (i: number): Passage => ({
  id: `${i}`,
  documentId: `d${i}`,
  source: `d${i}.txt`,
  position: 0,
  text: 'words',
  tokens: 100,
  score: 1 - i / 10,
  attributes: {},
})

const found: Retrieved = { outcome: 'fresh', because: 'found', passages: [0, 1, 2, 3].map(passage) }
const BUDGET_US = msToUs(150)
const wish = { corpus: 'handbook', passagesMax: 3, query: 'what?' }

/** Keeps its promise: whatever happens it answers when the budget ends. */
function retrieverOf(tookUs: number, asks: RetrievalAsk[] = []): (clock: Clock) => Retriever {
  return (clock) => ({
    async retrieve(ask) {
      asks.push(ask)
      await clock.sleep(Math.min(tookUs, ask.budgetUs))
      return tookUs <= ask.budgetUs ? found : { outcome: 'skipped', because: 'late', passages: [] }
    },
    lookUp: () => ({ kind: 'unknown' }),
  })
}

async function serve(
  retriever: (clock: Clock) => Retriever,
  more: Parameters<VirtualWorld['serve']>[0] = { retrieval: wish },
) {
  const { world } = await VirtualWorld.scripted([finished(3)], { retriever })
  const served = world.serve(more)
  await world.virtual.run()
  const ended = world.entries.find((entry) => entry.kind === 'retrieval-ended')
  return { world, served, ended, settled: served.settled as NonNullable<Served['settled']> }
}

describe('a request with a corpus', () => {
  it('waits for its passages, and is planned with as many as it may have', async () => {
    const asks: RetrievalAsk[] = []
    const { settled, ended } = await serve(retrieverOf(msToUs(20), asks))
    expect(settled.outcome).toBe('completed')
    expect(asks[0]).toMatchObject({ corpus: 'handbook', query: 'what?', passagesMax: 3, tenantId: settled.tenantId })
    expect(ended).toMatchObject({ outcome: 'fresh', passageCount: 3, passageTokens: 300, tookUs: msToUs(20) })
    expect(settled.grantedAt! - settled.admittedAt!).toBe(msToUs(20))
  })

  it('loses the budget and nothing else when retrieval is slow or dead', async () => {
    for (const tookUs of [msToUs(151), msToUs(60_000)]) {
      const { settled, ended } = await serve(retrieverOf(tookUs))
      expect(settled.outcome).toBe('completed')
      expect(ended).toMatchObject({ outcome: 'skipped', passageCount: 0, budgetUs: BUDGET_US })
      expect(settled.grantedAt! - settled.admittedAt!).toBe(BUDGET_US)
    }
  })

  it('goes on when retrieval breaks its promise and throws', async () => {
    const { settled, ended, world } = await serve(() => ({
      retrieve: () => Promise.reject(new Error('mad')),
      lookUp: () => Promise.reject(new Error('mad')),
    }))
    expect(settled.outcome).toBe('completed')
    expect(ended).toMatchObject({ outcome: 'failed' })
    expect(world.entries.some((entry) => entry.kind === 'fault-seen' && entry.where === 'retrieve')).toBe(true)
  })

  it('that its tenant does not have is refused before anything is spent', async () => {
    const asks: RetrievalAsk[] = []
    const retriever = (clock: Clock): Retriever => ({
      ...retrieverOf(0, asks)(clock),
      lookUp: () => ({ kind: 'none' }),
    })
    const { settled, served, world } = await serve(retriever)
    expect(settled).toMatchObject({
      outcome: 'rejected',
      attempts: 0,
      admittedAt: undefined,
      usage: { promptTokens: 0 },
    })
    expect(served.sink.refusal).toMatchObject({ code: 'no-such-corpus', param: 'spillway.retrieval.corpus' })
    expect(asks).toEqual([])
    expect(world.unrest()).toEqual([])
  })

  it('has one budget for finding its corpus and its passages', async () => {
    const asks: RetrievalAsk[] = []
    const hanging = (clock: Clock): Retriever => ({
      ...retrieverOf(msToUs(60_000), asks)(clock),
      lookUp: (ask) => clock.sleep(ask.budgetUs).then(() => ({ kind: 'unknown' })),
    })
    const { settled } = await serve(hanging)
    expect(settled.outcome).toBe('completed')
    expect(settled.grantedAt! - settled.arrivedAt).toBe(BUDGET_US)
    expect(asks[0]?.budgetUs).toBe(BUDGET_US / 2)
  })

  it('is asked nothing when it names none', async () => {
    const asks: RetrievalAsk[] = []
    const { settled, ended } = await serve(retrieverOf(0, asks), {})
    expect(settled.outcome).toBe('completed')
    expect(asks).toEqual([])
    expect(ended).toBeUndefined()
  })

  it('frees everything when its client leaves meanwhile', async () => {
    const { world } = await VirtualWorld.scripted([finished(3)], { retriever: retrieverOf(msToUs(100)) })
    const gone = world.serve({ retrieval: wish })
    world.after(msToUs(10), () => gone.cancellation.cancel('client-gone'))
    const other = world.serve()
    await world.virtual.run()
    expect(gone.settled?.outcome).toBe('cancelled')
    expect(other.settled?.outcome).toBe('completed')
    expect(world.platform.liveCount).toBe(0)
  })

  it('lets others pass while it is not ready', async () => {
    const { world } = await VirtualWorld.scripted([finished(3)], { retriever: retrieverOf(msToUs(100)) })
    const first = world.serve({ retrieval: wish })
    const second = world.serve()
    await world.virtual.run()
    expect(second.settled!.grantedAt!).toBeLessThan(first.settled!.grantedAt!)
  })
})
