import { describe, expect, it } from 'vitest'
import { finished, type Turnout } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import { Rng } from '../base/rng.ts'
import type { AttemptEnded } from '../domain/entry.ts'

const CALLED_OFF = 'called off for an online request'
const OFFLINE = { band: 'offline', isStreamed: false } as const

/** One answer of many tokens: it earns a credit of a tenth. */
const earning = (promptTokens: number): Turnout => ({
  deltas: 1,
  ending: { kind: 'finished', usage: { promptTokens, cachedTokens: 0, outputTokens: 1 } },
})
/** Says nothing for ten seconds. */
const slow: Turnout = { ...finished(1), everyUs: 10_000_000 }

const calledOffOf = ({ entries }: VirtualWorld): AttemptEnded[] =>
  entries.filter((entry): entry is AttemptEnded => entry.kind === 'attempt-ended' && entry.because === CALLED_OFF)

/** A world in which one offline answer is done, and an offline request is running for a second. */
async function busyWith(turnouts: readonly Turnout[], tree = {}, concurrencyMax = 1) {
  const { world, backend } = await VirtualWorld.scripted(turnouts, { tree, concurrencyMax, waitMsMax: 60_000 })
  world.serve(OFFLINE)
  await world.run()
  const offline = world.serve(OFFLINE)
  await world.run(world.virtual.now() + 1_000_000)
  return { world, backend, offline }
}

describe('an online request that would wait', () => {
  it('has its turn soon, and the offline one runs again and is charged once', async () => {
    const { world, offline } = await busyWith([earning(5_000), slow, finished(3)])
    const cameAt = world.virtual.now()
    const online = world.serve()
    await world.run()
    expect(online.settled).toMatchObject({ outcome: 'completed', grantedAt: cameAt + 80_000, attempts: 1 })
    expect(offline.settled).toMatchObject({ outcome: 'completed', attempts: 2 })
    expect(offline.settled?.usage).toMatchObject({ promptTokens: 20, outputTokens: 3 })
    expect(offline.sink.calls).toEqual(['start', 'write', 'write', 'write', 'finish'])
    const [end, ...others] = calledOffOf(world)
    expect(others).toEqual([])
    expect(end).toMatchObject({ ticketId: offline.request.id, ending: 'cancelled' })
    expect(end?.unpaidCost).toBeGreaterThan(0)
    const again = world.entries.filter((entry) => entry.kind === 'granted' && entry.ticketId === offline.request.id)
    expect(again[1]).toMatchObject({ again: 'it gave way to an online request' })
    expect(world.unrest()).toEqual([])
  })

  it('waits for no longer than a tenth of its promise before', async () => {
    const { world, offline } = await busyWith([earning(5_000), slow, finished(3)])
    const { tenant } = offline.request
    const cameAt = world.virtual.now()
    const online = world.serve({ tenant: { ...tenant, slo: { ...tenant.slo, ttftUs: 200_000 } } })
    await world.run()
    expect(online.settled).toMatchObject({ grantedAt: cameAt + 20_000 })
  })

  it('costs no offline run when it has its turn by itself before', async () => {
    const brief: Turnout = { ...finished(1), everyUs: 1_070_000 }
    const { world, offline } = await busyWith([earning(5_000), brief, finished(3)])
    const online = world.serve()
    await world.run()
    expect(calledOffOf(world)).toEqual([])
    expect([offline, online].map(({ settled }) => settled?.outcome)).toEqual(['completed', 'completed'])
    expect(world.unrest()).toEqual([])
  })

  it('takes the place of the youngest', async () => {
    const { world, offline } = await busyWith([earning(5_000), slow, slow, finished(3)], {}, 2)
    const younger = world.serve(OFFLINE)
    await world.run(world.virtual.now() + 1_000)
    const online = world.serve()
    await world.run()
    expect(calledOffOf(world).map(({ ticketId }) => ticketId)).toEqual([younger.request.id])
    expect([offline, younger, online].map(({ settled }) => settled?.attempts)).toEqual([1, 2, 1])
    expect(world.unrest()).toEqual([])
  })

  it('waits where nothing may be wasted any more, or ever', async () => {
    for (const [earned, ratio] of [
      [100, 0.1],
      [5_000, 0],
    ] as const) {
      const { world, offline } = await busyWith([earning(earned), slow, finished(3)], {
        offline: { wasteRatioMax: ratio },
      })
      const online = world.serve()
      await world.run()
      expect(calledOffOf(world)).toEqual([])
      expect(online.settled?.grantedAt).toBeGreaterThanOrEqual(offline.settled?.at ?? Number.POSITIVE_INFINITY)
      expect(world.unrest()).toEqual([])
    }
  })

  it('waits for an answer of which its client has seen something', async () => {
    const begun: Turnout = { ...finished(4), everyUs: 900_000 }
    const { world, offline } = await busyWith([earning(5_000), begun, finished(3)])
    const online = world.serve()
    await world.run()
    expect(calledOffOf(world)).toEqual([])
    expect([online, offline].map(({ settled }) => settled?.outcome)).toEqual(['completed', 'completed'])
    expect(world.unrest()).toEqual([])
  })
})

it('nothing is called off for an offline request', async () => {
  const { world, offline } = await busyWith([earning(5_000), slow, finished(3)])
  const other = world.serve(OFFLINE)
  await world.run()
  expect(calledOffOf(world)).toEqual([])
  expect([offline, other].map(({ settled }) => settled?.attempts)).toEqual([1, 1])
  expect(world.unrest()).toEqual([])
})

it('nothing is called off in observe-only mode, which changes nobody’s turn', async () => {
  const { world } = await busyWith([earning(5_000), slow, finished(3)], { admission: { mode: 'observe' } })
  world.serve()
  await world.run()
  expect(calledOffOf(world)).toEqual([])
})

it('a request gives way three times and then runs to its end', async () => {
  const { world, offline } = await busyWith([
    earning(50_000),
    slow,
    finished(1),
    slow,
    finished(1),
    slow,
    finished(1),
    slow,
  ])
  for (let n = 0; n < 5; n++) {
    world.serve()
    await world.run(world.virtual.now() + 1_000_000)
  }
  await world.run()
  expect(calledOffOf(world)).toHaveLength(3)
  expect(offline.settled).toMatchObject({ outcome: 'completed', attempts: 4 })
  expect(world.unrest()).toEqual([])
})

it('a client that goes while its request is called off ends it once', async () => {
  const { world, offline } = await busyWith([earning(5_000), slow, finished(3)])
  world.serve()
  world.virtual.at(world.virtual.now() + 80_000, () => offline.cancellation.cancel('client-gone'))
  await world.run()
  expect(offline.settled).toMatchObject({ outcome: 'cancelled' })
  expect(calledOffOf(world)).toHaveLength(1)
  expect(world.unrest()).toEqual([])
})

/** Any mixture of requests, in virtual time. */
async function mixture(seed: number, ratio: number) {
  const rng = Rng.stream(seed, 'call-off')
  const between = (low: number, high: number): number => low + Math.floor(rng.next() * (high - low + 1))
  const turnouts = Array.from({ length: 200 }, (): Turnout => {
    const deltas = between(1, 4)
    const usage = { promptTokens: between(20, 400), cachedTokens: 0, outputTokens: deltas }
    return { deltas, everyUs: between(1_000, 400_000), ending: { kind: 'finished', usage } }
  })
  const options = { concurrencyMax: between(1, 4), replicas: between(1, 2), waitMsMax: 600_000, queueMax: 1_000 }
  const { world } = await VirtualWorld.scripted(turnouts, { ...options, tree: { offline: { wasteRatioMax: ratio } } })
  const { offlineWaste } = world.platform.policies
  const shares: number[] = []
  for (let n = 0; n < 120; n++) {
    const size = { segments: [{ role: 'user' as const, tokens: between(1, 60) }] }
    world.serve(rng.next() < 0.7 ? { ...OFFLINE, ...size } : size)
    await world.run(world.virtual.now() + between(0, 300_000))
    const { doneTokens, wastedTokens } = offlineWaste.view()
    shares.push(wastedTokens / Math.max(1, doneTokens + wastedTokens))
  }
  await world.run()
  return { world, shares }
}

describe('whatever comes', () => {
  it.each([0.02, 0.1, 0.5])('at most %f of offline tokens are wasted, and every ticket ends once', async (ratio) => {
    let calledOffCount = 0
    for (let seed = 1; seed <= 12; seed++) {
      const { world, shares } = await mixture(seed, ratio)
      expect(Math.max(...shares)).toBeLessThanOrEqual(ratio + 1e-9)
      // The journal's own account of it.
      let done = 0
      for (const entry of world.entries)
        if (entry.kind === 'settled' && entry.band === 'offline')
          done += entry.usage.promptTokens + entry.usage.outputTokens
      const ends = calledOffOf(world)
      const wasted = ends.reduce((sum, { unpaidCost }) => sum + unpaidCost, 0)
      expect(wasted).toBeLessThanOrEqual(ratio * (done + wasted))
      calledOffCount += ends.length
      expect(world.unrest()).toEqual([])
    }
    expect(calledOffCount).toBeGreaterThan(5)
  })
})
