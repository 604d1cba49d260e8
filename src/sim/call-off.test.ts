import { expect, it } from 'vitest'
import type { CostClosed } from '../domain/cost-entry.ts'
import type { AttemptEnded, Entry, Settled } from '../domain/entry.ts'
import type { OfflineWaste } from '../policy/limits/offline-waste.ts'
import type { Scenario } from './scenario/scenario.ts'
import { simulate } from './simulate.ts'

/** One replica that offline work may fill to the promise, and people beside it. */
const scenarioOf = (wasteRatioMax: number): Scenario => ({
  name: 'call-off',
  about: '',
  durationS: 40,
  platform: {
    models: [{ name: 'chat' }],
    pools: [{ model: 'chat', backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 1 }],
    queue: { requestsMax: 10_000, waitMsMax: 60_000 },
    offline: { interTokenMs: 50, kvShare: 1, wasteRatioMax },
    slos: [{ name: 'chat', ttftMs: 5_000, interTokenMs: 50, totalMs: 60_000 }],
    tenants: [
      { id: 'people', slo: 'chat' },
      { id: 'night', slo: 'chat' },
    ],
  },
  workload: [
    { ...lengths(), tenant: 'people', model: 'chat', arrivals: { kind: 'poisson', ratePerS: 8 } },
    { ...lengths(), tenant: 'night', model: 'chat', band: 'offline', arrivals: { kind: 'poisson', ratePerS: 40 } },
  ],
})

function lengths() {
  const prompt = { kind: 'uniform', min: 500, max: 3_000 } as const
  return { prompt, output: { kind: 'uniform', min: 50, max: 400 } } as const
}

async function play(wasteRatioMax: number) {
  const entries: Entry[] = []
  let meter: OfflineWaste | undefined
  const report = await simulate(scenarioOf(wasteRatioMax), {
    seed: 1,
    onEntry: (entry) => void entries.push(entry),
    onAssembled: ({ policies }) => {
      meter = policies.offlineWaste
    },
  })
  const { doneTokens = 0, wastedTokens = 0 } = meter?.view() ?? {}
  const calledOff = entries.filter(
    (entry): entry is AttemptEnded =>
      entry.kind === 'attempt-ended' && entry.because === 'called off for an online request',
  )
  const costs = entries.filter((entry): entry is CostClosed => entry.kind === 'cost-closed')
  const settled = entries.filter((entry): entry is Settled => entry.kind === 'settled')
  return { report, calledOff, costs, settled, doneTokens, wastedTokens }
}

const waitOf = ({ report: { tenants } }: Awaited<ReturnType<typeof play>>) => tenants['people']?.latency.ttft.p95 ?? 0

it('offline work gives way to people within its ratio, and every law holds', async () => {
  const given = await play(0.1)
  const { report, calledOff, doneTokens, wastedTokens } = given
  expect(report.laws).toEqual([])
  expect(calledOff.length).toBeGreaterThan(10)
  expect(wastedTokens).toBeGreaterThan(0)
  expect(wastedTokens).toBeLessThanOrEqual(0.1 * (doneTokens + wastedTokens))
  const without = await play(0)
  expect(without.calledOff).toEqual([])
  expect(without.report.laws).toEqual([])
  expect(waitOf(given)).toBeLessThan(waitOf(without))
})

it('who gave way runs again and ends once, and the platform bears the run that was lost', async () => {
  const { calledOff, costs, settled } = await play(0.1)
  const yielded = new Set(calledOff.map(({ ticketId }) => ticketId))
  let borneCount = 0
  for (const ticketId of yielded) {
    const ends = settled.filter((entry) => entry.ticketId === ticketId)
    expect(ends).toHaveLength(1)
    expect(ends[0]?.attempts).toBeGreaterThan(1)
    const [cost, ...more] = costs.filter((entry) => entry.ticketId === ticketId)
    expect(more).toEqual([])
    if ((cost?.wasteNano ?? 0) > 0) borneCount++
  }
  // Some are called off before their engine has done anything for them.
  expect(borneCount).toBeGreaterThan(yielded.size / 2)
})
