import { Rng } from '../../../src/base/rng.ts'
import { drawExponential, drawTokens, drawUnitGap } from '../../../src/sim/clients/draw.ts'
import { loadScenario } from '../../../src/sim/scenario/fs-scenario.ts'
import { configOf, streamsOf } from '../../../src/sim/scenario/scenario-config.ts'
import { openTrace } from '../../../src/sim/traces/fs-trace.ts'
import type { VtcRequest } from './a10g-engine.ts'

/**
 * The workloads of the VTC paper, with the rates, lengths and durations of its artifact's `exp_suite.py`. The real
 * trace is read from a file, or drawn from what was fitted to it (scenarios/vtc-real.yaml).
 */
export interface VtcWorkload {
  readonly durationS: number
  readonly weights?: Readonly<Record<string, number>>
  readonly requests: (seed: number) => readonly VtcRequest[]
}

const US = 1_000_000

export const SYNTHETIC: Readonly<Record<string, VtcWorkload>> = {
  overload: { durationS: 360, requests: (seed) => steady(seed, 360, [1.5, 3]) },
  'overload-multi': {
    durationS: 360,
    requests: (seed) => steady(seed, 360, [0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6]),
  },
  weighted: {
    durationS: 360,
    weights: { c1: 1, c2: 2, c3: 3, c4: 4 },
    requests: (seed) => steady(seed, 360, [0.8, 0.8, 1.2, 1.6]),
  },
  'on-off': {
    durationS: 600,
    requests: (seed) =>
      steady(seed, 600, [2, 3]).filter(
        ({ tenant, arrivedAtUs }) => tenant !== 'c1' || Math.floor(arrivedAtUs / (60 * US)) % 2 === 0,
      ),
  },
  proportional: { durationS: 600, requests: (seed) => steady(seed, 600, [0.25, 0.5, 1.5]) },
  'short-long': { durationS: 600, requests: shortLong },
}

export function realTrace(path: string | undefined): VtcWorkload {
  return { durationS: 600, requests: path === undefined ? fitted : () => recorded(path) }
}

/** The same requests, each up to half a second sooner or later: how much of a result is the chance of one run? */
export function shakenTrace(path: string | undefined): VtcWorkload {
  const { durationS, requests } = realTrace(path)
  return {
    durationS,
    requests: (seed) => {
      const shake = Rng.stream(seed, 'shake')
      const moved = requests(seed).map((request) => ({
        ...request,
        arrivedAtUs: Math.max(0, request.arrivedAtUs + Math.round((shake.next() - 0.5) * US)),
      }))
      return inOrder(moved)
    },
  }
}

function recorded(path: string): VtcRequest[] {
  return [...openTrace(path).requests()].map(({ atUs, tenant = 'nobody', promptTokens, outputTokens }) => ({
    tenant,
    arrivedAtUs: atUs,
    promptTokens,
    outputTokens,
  }))
}

function fitted(seed: number): VtcRequest[] {
  const { scenario } = loadScenario('vtc-real')
  const requests = streamsOf(scenario, configOf(scenario, seed)).flatMap(({ name, caller, spec }) => {
    const arrivals = Rng.stream(seed, `arrivals/${name}`)
    const lengths = Rng.stream(seed, `lengths/${name}`)
    const own: VtcRequest[] = []
    if (spec.arrivals.kind === 'closed') throw new Error('the fitted trace is an open loop')
    let atS = spec.fromS ?? 0
    for (;;) {
      atS += drawUnitGap(spec.arrivals, arrivals) / spec.arrivals.ratePerS
      if (atS >= scenario.durationS) return own
      const promptTokens = drawTokens(spec.prompt, lengths)
      const outputTokens = drawTokens(spec.output, lengths)
      own.push({ tenant: caller.tenant.id, arrivedAtUs: Math.round(atS * US), promptTokens, outputTokens })
    }
  })
  return inOrder(requests)
}

/** Each client sends 256 tokens in, 256 out, at even gaps from a random start. */
function steady(seed: number, durationS: number, ratesPerS: readonly number[]): VtcRequest[] {
  const starts = Rng.stream(seed, 'arrivals')
  const requests = ratesPerS.flatMap((ratePerS, index) => {
    const startS = starts.next() / ratePerS
    return Array.from({ length: Math.floor(ratePerS * durationS) }, (_, i) => ({
      tenant: `c${index + 1}`,
      arrivedAtUs: Math.round((startS + (i + 1) / ratePerS) * US),
      promptTokens: 256,
      outputTokens: 256,
    }))
  })
  return inOrder(requests)
}

/** Poisson: eight short requests (64 in, 64 out) a second of one client, one and a half long ones (256) of the other. */
function shortLong(seed: number): VtcRequest[] {
  const arrivals = Rng.stream(seed, 'arrivals')
  const requests: VtcRequest[] = []
  let atS = 0
  for (let i = 0; i < 9.5 * 600; i++) {
    atS += drawExponential(arrivals) / 9.5
    const isShort = arrivals.next() < 8 / 9.5
    const tokens = isShort ? 64 : 256
    const tenant = isShort ? 'short' : 'long'
    requests.push({ tenant, arrivedAtUs: Math.round(atS * US), promptTokens: tokens, outputTokens: tokens })
  }
  return requests
}

const inOrder = (requests: VtcRequest[]): VtcRequest[] => requests.sort((a, b) => a.arrivedAtUs - b.arrivedAtUs)
