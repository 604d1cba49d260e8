import type { Entry, Settled } from '../../src/domain/entry.ts'
import type { Platform } from '../../src/lifecycle/platform.ts'
import { COST_DEFAULTS } from '../../src/policy/planning/cost.ts'
import type { OutputPrediction } from '../../src/policy/planning/output-length.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { simulate } from '../../src/sim/simulate.ts'
import { type LengthName, lengthsOf } from './answer-lengths.ts'

/**
 * How far apart is the service that overloading tenants have had, at worst? Through the whole platform: admission,
 * lanes, limits and the simulated engine. Service is counted as the platform shares it, 1 for a prompt token and 4 for an
 * output token: with the VTC paper's 2 the platform would even out something else than is measured; an answer's tokens are spread evenly from its first to its last.
 */
export interface GapOptions {
  readonly tenantCount: number
  /** What is charged at dispatch: the true length, or what history says. Nothing but this experiment knows the true one. */
  readonly knows: 'true-length' | 'history'
  readonly seed: number
  readonly durationS?: number
  /** `fixed` unless told. */
  readonly lengths?: LengthName
  /** Requests a second; four times what one replica does unless told. */
  readonly ratePerS?: number
}

const TOKENS = 256
const WARMUP_S = 30
/**
 * Four times what one replica does with these. Admission lets so few wait that one of eight tenants' lanes is empty now and
 * then; who has nothing queued loses its turn, and that is most of the gap of eight. At sixteen times no lane is empty.
 */
const RATE_PER_S = 240

/** All answers are equally long, so the oracle need not know whose it is asked about. */
const TRUE_LENGTH: OutputPrediction = { tokens: TOKENS, tokensHigh: TOKENS, tokensMean: TOKENS, source: 'habit' }

export async function measureServiceGap(options: GapOptions): Promise<{ gap: number; servedPerS: number }> {
  const { tenantCount, knows, seed, durationS = 300, lengths = 'fixed', ratePerS = RATE_PER_S } = options
  const service = new ServiceOverTime(durationS)
  const onEntry = (entry: Entry): void => {
    if (entry.kind === 'settled') service.add(entry)
  }
  const onAssembled = ({ policies }: Platform): void => {
    if (knows === 'true-length') policies.outputs.predict = () => TRUE_LENGTH
  }
  await simulate(scenarioOf({ tenantCount, durationS, lengths, ratePerS }), { seed, onEntry, onAssembled })
  return service.view()
}

type Load = Required<Pick<GapOptions, 'tenantCount' | 'durationS' | 'lengths' | 'ratePerS'>>

function scenarioOf({ tenantCount, durationS, lengths, ratePerS }: Load): Scenario {
  const ids = Array.from({ length: tenantCount }, (_, i) => `t${i}`)
  return {
    name: 'served-gap',
    about: '',
    durationS,
    platform: {
      models: [{ name: 'large' }],
      pools: [{ model: 'large', backend: { kind: 'simulated', profile: 'h100-llama-8b' } }],
      tenants: ids.map((id) => ({ id, weight: 1, slo: 'steady', contract: 'reject' })),
    },
    workload: ids.map((tenant, who) => ({
      tenant,
      model: 'large',
      arrivals: { kind: 'poisson', ratePerS: ratePerS / tenantCount },
      prompt: { kind: 'fixed', tokens: TOKENS },
      output: lengthsOf(lengths, who),
    })),
  }
}

/** Service by tenant and second. */
class ServiceOverTime {
  readonly #seconds: number
  readonly #byTenant = new Map<string, Float64Array>()

  constructor(seconds: number) {
    this.#seconds = seconds
  }

  add({ tenantId, firstTokenAt, lastTokenAt, usage }: Settled): void {
    if (firstTokenAt === undefined || lastTokenAt === undefined) return
    let service = this.#byTenant.get(tenantId)
    if (service === undefined) {
      service = new Float64Array(this.#seconds + 1)
      this.#byTenant.set(tenantId, service)
    }
    const put = (second: number, amount: number): void => {
      if (second <= this.#seconds) service[second] = (service[second] ?? 0) + amount
    }
    const from = firstTokenAt / 1e6
    const to = Math.max(from + 1e-6, lastTokenAt / 1e6)
    put(Math.floor(from), usage.promptTokens)
    for (let second = Math.floor(from); second <= Math.floor(to); second++) {
      const part = Math.min(to, second + 1) - Math.max(from, second)
      put(second, (COST_DEFAULTS.outputWeight * usage.outputTokens * part) / (to - from))
    }
  }

  /** The most that anybody is ahead of anybody, counted from the end of the warm-up. */
  view(): { gap: number; servedPerS: number } {
    const sums = [...this.#byTenant.values()].map((service) => ({ service, sum: 0 }))
    let gap = 0
    for (let second = WARMUP_S; second < this.#seconds; second++) {
      for (const each of sums) each.sum += each.service[second] ?? 0
      gap = Math.max(gap, Math.max(...sums.map(({ sum }) => sum)) - Math.min(...sums.map(({ sum }) => sum)))
    }
    const served = sums.reduce((total, { sum }) => total + sum, 0)
    return { gap, servedPerS: served / (this.#seconds - WARMUP_S) }
  }
}

/** The gaps over some seeds, with lengths that are known and with lengths that are predicted from history. */
export async function sumServiceGaps(over: {
  readonly tenantCount: number
  readonly seeds: readonly number[]
  readonly durationS: number
}): Promise<{ known: number; predicted: number }> {
  const { tenantCount, seeds, durationS } = over
  let known = 0
  let predicted = 0
  for (const seed of seeds) {
    known += (await measureServiceGap({ tenantCount, knows: 'true-length', seed, durationS })).gap
    predicted += (await measureServiceGap({ tenantCount, knows: 'history', seed, durationS })).gap
  }
  return { known, predicted }
}
