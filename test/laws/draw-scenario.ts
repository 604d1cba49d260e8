import { Rng } from '../../src/base/rng.ts'
import type { Arrivals, Fault, Lengths, Scenario, StreamSpec } from '../../src/sim/scenario/scenario.ts'

/** A scenario of some seconds, drawn from a seed: fleet, limits, tenants, budgets, habits and faults. */
export function drawScenario(seed: number): Scenario {
  return withCallOff(drawBefore(seed), new Draw(seed, 'swarm-call-off'))
}

/** The same without offline work that gives way: what the seeds that are kept by name were found with. */
export function drawBefore(seed: number): Scenario {
  return withScreens(withRollout(drawPlain(seed), new Draw(seed, 'swarm-rollout')), new Draw(seed, 'swarm-screens'))
}

/** In most of them offline work gives way to other requests, within more or less waste; in half of those it fills the fleet. */
function withCallOff(scenario: Scenario, draw: Draw): Scenario {
  if (draw.isTrue(0.2)) return scenario
  const offline = {
    kvShare: draw.of([0.1, 0.5, 1]),
    wasteRatioMax: draw.of([0, 0.1, 0.1, 0.5, 1]),
    ...(draw.isTrue(0.5) && { interTokenMs: draw.of([10, 50, 1_000]) }),
  }
  const platform = { ...scenario.platform, offline }
  return draw.isTrue(0.5) ? { ...scenario, platform } : withCrowd({ ...scenario, platform }, draw)
}

/**
 * Offline work that fills the fleet, beside people. Its prompts are long: a client sees nothing of its answer while they
 * are read, so its requests may be called off.
 */
function withCrowd(scenario: Scenario, draw: Draw): Scenario {
  const platform = scenario.platform as { offline: object; pools: object[]; tenants: object[] }
  const [large, ...pools] = platform.pools
  const prompt = { kind: 'uniform', min: 500, max: 3_000 } as const
  const output = { kind: 'uniform', min: 1, max: draw.of([5, 200]) } as const
  const night = { tenant: 'night', model: 'large', band: 'offline', prompt, output } as const
  const people = { tenant: 'people', model: 'large', prompt: drawLengths(draw, 1_000), output } as const
  return {
    ...scenario,
    platform: {
      ...platform,
      queue: { requestsMax: 1_000, waitMsMax: 30_000 },
      offline: { ...platform.offline, kvShare: 1 },
      pools: [{ ...large, limit: { kind: 'fixed', concurrencyMax: draw.of([1, 4, 16]) } }, ...pools],
      tenants: [...platform.tenants, { id: 'night', slo: 'steady' }, { id: 'people', slo: 'steady' }],
    },
    workload: [
      ...scenario.workload,
      { ...night, arrivals: { kind: 'closed', sessions: draw.of([10, 100]), thinkS: 0.1 } },
      { ...people, arrivals: { kind: 'poisson', ratePerS: draw.of([2, 10]) } },
    ],
  }
}

/** In some of them requests are judged, in half of those also by a guard model, which may be lost. */
function withScreens(scenario: Scenario, draw: Draw): Scenario {
  if (draw.isTrue(0.6)) return scenario
  const platform = scenario.platform as { models: object[]; pools: object[] }
  const hasGuard = draw.isTrue(0.5)
  const isApart = draw.isTrue(0.7)
  const guardModel = { model: isApart ? 'guard' : 'large', timeoutMs: draw.of([20, 500, 3_000]) }
  const guarding = {
    guard: draw.of(['block', 'block', 'flag', 'observe']),
    guardModel,
    onFailure: { guard: draw.of(['open', 'closed', 'degrade']) },
  }
  const screening = {
    input: { injection: draw.of(['block', 'flag', 'observe']), abuse: draw.of(['off', 'observe', 'block']) },
    join: draw.of(['gate', 'overlap']),
    ...(hasGuard && guarding),
  }
  const inside = draw.isTrue(0.5)
  const guards = { id: 'guards', model: 'guard', backend: drawBackend(draw), limit: drawLimit(draw) }
  const loss = draw.of<Fault[]>([
    [],
    [{ kind: 'pool-loss', target: 'guards', atS: draw.between(0, 5), forS: draw.of([1, 100]) }],
    [{ kind: 'replica-hang', target: 'guards', atS: draw.between(0, 5), forS: draw.of([1, 100]) }],
  ])
  return {
    ...scenario,
    platform: {
      ...scenario.platform,
      screening,
      models: [...platform.models, ...(hasGuard ? [{ name: 'guard' }] : [])],
      pools: [
        ...platform.pools.map((pool) => ({ ...pool, inside })),
        ...(hasGuard ? [{ ...guards, ...(draw.isTrue(0.5) && { dedicatedTo: ['spillway'] }) }] : []),
      ],
    },
    screens: {
      ...draw.of([{}, { check: { p50Ms: 1, p95Ms: 2 } }, { check: { p50Ms: 80, p95Ms: 400 } }]),
      harmfulRatio: draw.of([0, 0.1, 0.5]),
      greyRatio: draw.of([0, 0.3, 1]),
    },
    faults: [...(scenario.faults ?? []), ...(hasGuard ? loss : [])],
  }
}

/** In half of them a second release is tried, by a judge in a hurry; in some of those it is worse in one respect. */
function withRollout(scenario: Scenario, draw: Draw): Scenario {
  if (draw.isTrue(0.5)) return scenario
  const platform = scenario.platform as { models: object[]; pools: object[] }
  const [large, ...others] = platform.models
  const rollout = {
    stable: '1',
    canary: '2',
    steps: draw.of([[5], [50], [10, 30, 60]]),
    dwellMs: draw.of([0, 500, 3_000]),
    stickyBy: draw.of(['session', 'tenant']),
    judge: { pairsMin: draw.of([1, 10, 400]) },
    ...(draw.isTrue(0.4) ? { shadow: { percent: draw.of([10, 100]), inFlightMax: draw.of([1, 8]) } } : {}),
    ...(draw.isTrue(0.4)
      ? { holdout: { perMinute: 600, items: [{ id: 'i', prompt: 'What?', expected: 'that' }] } }
      : {}),
    rules: draw.isTrue(0.3) ? [{ tenant: 't0', release: draw.of(['1', '2']) }] : [],
  }
  const releases = [{ version: '1' }, { version: '2', contextTokensMax: draw.of([2_048, 32_768]) }]
  const canary = { model: 'large', release: '2', backend: drawBackend(draw), limit: drawLimit(draw) }
  const worse = draw.of<Fault[]>([
    [],
    [{ kind: 'replica-errors', target: 'large@2', ratio: draw.of([0.2, 1]), atS: 0, forS: 100 }],
    [{ kind: 'replica-refusals', target: 'large@2', ratio: 0.5, atS: 0, forS: 100 }],
    [{ kind: 'replica-wrong', target: 'large@2', ratio: 0.5, atS: 0, forS: 100 }],
    [{ kind: 'replica-slow', target: 'large@2', factor: draw.of([1.3, 3]), atS: 0, forS: 100 }],
    [{ kind: 'replica-crash', target: 'large@2', atS: draw.between(0, 5), forS: draw.of([1, 100]) }],
  ])
  return {
    ...scenario,
    platform: {
      ...scenario.platform,
      models: [{ ...large, releases, rollout }, ...others],
      pools: [...platform.pools, canary],
    },
    workload: scenario.workload.map((stream) => (draw.isTrue(0.7) ? { ...stream, conversations: 50 } : stream)),
    faults: [...(scenario.faults ?? []), ...worse],
  }
}

function drawPlain(seed: number): Scenario {
  const draw = new Draw(seed)
  const durationS = draw.between(5, 15)
  const hasFallback = draw.isTrue(0.5)
  const replicas = draw.between(1, 3)
  const tenants = Array.from({ length: draw.between(1, 6) }, (_, i) => drawTenant(draw, i))
  return {
    name: `swarm-${seed}`,
    about: 'drawn',
    durationS,
    windowS: 1,
    platform: {
      queue: { requestsMax: draw.of([1, 20, 1_000]), waitMsMax: draw.of([100, 3_000, 30_000]) },
      admission: { mode: draw.of(['enforce', 'enforce', 'observe']), safetyMargin: draw.of([0, 0.1, 0.4]) },
      models: [
        { name: 'large', contextTokensMax: draw.of([4_096, 32_768]), ...(hasFallback ? { fallback: 'small' } : {}) },
        ...(hasFallback ? [{ name: 'small', contextTokensMax: 8_192 }] : []),
      ],
      pools: [
        { model: 'large', backend: drawBackend(draw), replicas, limit: drawLimit(draw) },
        ...(hasFallback ? [{ model: 'small', backend: { kind: 'simulated', profile: 'h200-llama-1b' } }] : []),
      ],
      tenants,
    },
    workload: tenants.flatMap(({ id }) =>
      Array.from({ length: draw.between(1, 2) }, () => drawStream(draw, String(id), durationS)),
    ),
    faults: Array.from({ length: draw.of([0, 0, 1, 2]) }, () => drawFault(draw, replicas, durationS)),
  }
}

function drawBackend(draw: Draw) {
  return { kind: 'simulated', profile: draw.of(['h100-llama-8b', 'a100-llama-8b', 'reference-a100']) }
}

function drawLimit(draw: Draw) {
  return { kind: draw.of(['auto', 'auto', 'fixed', 'gradient', 'aimd']), concurrencyMax: draw.of([1, 8, 64, 256]) }
}

function drawTenant(draw: Draw, index: number): Record<string, unknown> {
  const allowance = draw.of([
    {},
    {},
    { requests: { perMinute: draw.of([6, 600]) } },
    { tokens: { perMinute: draw.of([10_000, 1_000_000]), burst: 20_000 }, concurrencyMax: draw.of([1, 50]) },
  ])
  return {
    id: `t${index}`,
    weight: draw.of([0.5, 1, 3]),
    slo: draw.of(['fast', 'steady']),
    contract: draw.of(['degrade', 'reject']),
    bidMax: draw.of([0, 10]),
    allowance,
    ...(draw.isTrue(0.3) ? { org: draw.of(['x', 'y']) } : {}),
    ...(draw.isTrue(0.2) ? { waitMsMax: draw.of([0, 500]) } : {}),
  }
}

function drawStream(draw: Draw, tenant: string, durationS: number): StreamSpec {
  const maxTokens = draw.of([undefined, 'unset' as const, 1, 16, 4_000])
  return {
    tenant,
    model: 'large',
    band: draw.of(['interactive', 'standard', 'offline']),
    arrivals: drawArrivals(draw),
    prompt: drawLengths(draw, 6_000),
    output: drawLengths(draw, 800),
    ...(draw.isTrue(0.3)
      ? { phases: [{ fromS: durationS / 3, toS: durationS / 2, factor: draw.of([0, 5, 20]) }] }
      : {}),
    ...(draw.isTrue(0.3) ? { bids: [0, 1, 10] } : {}),
    ...(draw.isTrue(0.3) ? { retry: { kind: draw.of(['honour', 'at-once']), triesMax: draw.of([2, 5]) } } : {}),
    ...(draw.isTrue(0.3) ? { leaveAfterMs: { min: 0, max: draw.of([1, 3_000]), ratio: draw.of([0.2, 1]) } } : {}),
    ...(draw.isTrue(0.3) ? { prefix: { tokens: 256, groups: 3, ratio: 0.8 } } : {}),
    ...(draw.isTrue(0.2) ? { deadlineMs: draw.of([1, 300, 5_000]) } : {}),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  }
}

function drawArrivals(draw: Draw): Arrivals {
  const ratePerS = draw.of([0.5, 5, 20, 60])
  return draw.of<Arrivals>([
    { kind: 'poisson', ratePerS },
    { kind: 'gamma', ratePerS, cv: draw.of([0.5, 2]) },
    { kind: 'weibull', ratePerS, shape: draw.of([0.7, 2]) },
    { kind: 'closed', sessions: draw.of([1, 20]), thinkS: draw.of([0.1, 1]) },
  ])
}

function drawLengths(draw: Draw, most: number): Lengths {
  return draw.of<Lengths>([
    { kind: 'fixed', tokens: draw.between(1, most) },
    { kind: 'uniform', min: 1, max: draw.between(2, most) },
    {
      kind: 'quantiles',
      points: [
        [0, 1],
        [0.5, most / 8],
        [0.95, most / 2],
        [1, most],
      ],
    },
  ])
}

function drawFault(draw: Draw, replicas: number, durationS: number): Fault {
  const kind = draw.of(['replica-crash', 'replica-hang', 'replica-slow', 'pool-loss'] as const)
  const target = kind === 'pool-loss' ? 'large-local' : `large-local-${draw.between(0, replicas - 1)}`
  const atS = draw.between(0, durationS - 1)
  return { kind, target, atS, forS: draw.of([0.1, 2, 30]), ...(kind === 'replica-slow' ? { factor: 5 } : {}) }
}

export class Draw {
  readonly #rng: Rng

  constructor(seed: number, stream = 'swarm-scenario') {
    this.#rng = Rng.stream(seed, stream)
  }

  between(min: number, max: number): number {
    return min + this.#rng.below(max - min + 1)
  }

  isTrue(ratio: number): boolean {
    return this.#rng.next() < ratio
  }

  of<T>(items: readonly T[]): T {
    return items[this.#rng.below(items.length)] as T
  }
}
