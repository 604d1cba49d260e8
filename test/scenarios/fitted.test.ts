import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../../src/base/virtual-clock.ts'
import type { Settled } from '../../src/domain/entry.ts'
import { promptTokensOf, type Request } from '../../src/domain/request.ts'
import { Client } from '../../src/sim/clients/client.ts'
import { ClientScripts } from '../../src/sim/clients/scripts.ts'
import { loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import { configOf, streamsOf } from '../../src/sim/scenario/scenario-config.ts'
import { settled } from '../support/entries.ts'

/**
 * Are the shipped workloads like the traces that they are named after? Each is sent, in virtual time and to nobody,
 * and what was sent is measured. The figures are those of the recorded traces.
 */
interface Sent {
  readonly atS: number
  readonly tenant: string
  readonly promptTokens: number
  readonly outputTokens: number
}

async function sendAll(name: string, seed = 1): Promise<{ sent: Sent[]; durationS: number }> {
  const { scenario } = loadScenario(name)
  const streams = streamsOf(scenario, configOf(scenario, seed))
  const clock = new VirtualClock()
  const sent: Sent[] = []
  const lengths = new Map<string, number>()
  class Recording extends ClientScripts {
    override expect(requestId: string, outputTokens: number): void {
      lengths.set(requestId, outputTokens)
    }
  }
  const serve = (request: Request): Promise<Settled> => {
    sent.push({
      atS: request.arrivedAt / 1e6,
      tenant: request.tenant.id,
      promptTokens: promptTokensOf(request),
      outputTokens: lengths.get(request.id) ?? 0,
    })
    return Promise.resolve(settled())
  }
  const endAt = scenario.durationS * 1e6
  for (const { name: stream, caller, spec } of streams) {
    new Client({ clock, scripts: new Recording(), serve, caller, spec, seed, name: stream, endAt }).start()
  }
  await clock.run()
  return { sent: sent.toSorted((a, b) => a.atS - b.atS), durationS: scenario.durationS }
}

const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(q * values.length)] ?? 0

function variation(times: readonly number[]): number {
  const gaps = times.slice(1).map((at, i) => at - times[i]!)
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length
  return Math.sqrt(variance) / mean
}

function peakPerSecond(times: readonly number[]): number {
  const counts = new Map<number, number>()
  for (const at of times) counts.set(Math.floor(at), (counts.get(Math.floor(at)) ?? 0) + 1)
  return Math.max(...counts.values())
}

/** How far off, as a share of what the trace has. */
const miss = (value: number, wanted: number): number => Math.abs(value / wanted - 1)

describe.each([
  { name: 'azure-conv', rate: 5.5, cv: 1.1, input: [1_020, 2_734, 4_142], output: [129, 424, 601] },
  { name: 'azure-code', rate: 2.6, cv: 13, input: [1_469, 5_188, 7_436], output: [13, 55, 251] },
  { name: 'mooncake', rate: 3.9, cv: 1.0, input: [11_587, 38_615, 66_458], output: [69, 389, 769] },
  { name: 'vtc-real', rate: 2.5, cv: 1.1, input: [40, 432, 929], output: [211, 513, 785] },
])('$name', ({ name, rate, cv, input, output }) => {
  it('is like its trace', async () => {
    // One run of some scenarios has too few requests for its quantiles to be steady.
    const runs = await Promise.all([1, 2, 3].map((seed) => sendAll(name, seed)))
    for (const { sent, durationS } of runs) {
      expect(miss(sent.length / durationS, rate)).toBeLessThan(0.1)
      expect(miss(variation(sent.map(({ atS }) => atS)), cv)).toBeLessThan(0.2)
    }
    const all = runs.flatMap(({ sent }) => sent)
    for (const [i, q] of [0.5, 0.9, 0.99].entries()) {
      expect(
        miss(
          quantile(
            all.map(({ promptTokens }) => promptTokens),
            q,
          ),
          input[i]!,
        ),
      ).toBeLessThan(0.15)
      expect(
        miss(
          quantile(
            all.map(({ outputTokens }) => outputTokens),
            q,
          ),
          output[i]!,
        ),
      ).toBeLessThan(0.15)
    }
  })
})

it('azure-code has its worst second', async () => {
  expect(miss(peakPerSecond((await sendAll('azure-code')).sent.map(({ atS }) => atS)), 67)).toBeLessThan(0.15)
})

it('vtc-real: four of 27 tenants send 58 %', async () => {
  const { sent } = await sendAll('vtc-real')
  expect(new Set(sent.map(({ tenant }) => tenant)).size).toBe(27)
  const heavy = sent.filter(({ tenant }) => ['u2', 'u10', 'u0', 'u5'].includes(tenant)).length
  expect(miss(heavy / sent.length, 0.58)).toBeLessThan(0.05)
})

it('servegen-m-large: the top 1, 5 and 10 of 60 clients hold 16, 43 and 63 %', async () => {
  const { sent } = await sendAll('servegen-m-large')
  const counts = new Map<string, number>()
  for (const { tenant } of sent) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
  const ranked = [...counts.values()].toSorted((a, b) => b - a)
  expect(ranked.length).toBe(60)
  const share = (top: number): number => ranked.slice(0, top).reduce((sum, n) => sum + n, 0) / sent.length
  expect(miss(share(1), 0.16)).toBeLessThan(0.1)
  expect(miss(share(5), 0.43)).toBeLessThan(0.1)
  expect(miss(share(10), 0.63)).toBeLessThan(0.1)
})
