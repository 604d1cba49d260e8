import { hashKey } from '../../../src/config/key-hash.ts'
import type { FullWorkPrices } from '../../../src/engine/full-work.ts'
import { checkScenario } from '../../../src/sim/scenario/fs-scenario.ts'
import type { Scenario } from '../../../src/sim/scenario/scenario.ts'
import { workS } from '../unseen/cell-requests.ts'
import type { Cell, Offence } from './grid.ts'

/** A cell as a scenario: two calm tenants at half of their share, and the offender, which comes after the warm-up. */
export const CALM_IDS = ['calm-a', 'calm-b'] as const
export const PROFILE = 'h100-llama-8b'
/** Three claims of equal weight: two calm tenants and the offender, however many keys or tenants that has. */
export const SHARE = 1 / 3

/** Lengths are learned and engines fill with calm traffic first. */
const WARMUP_S = 10
/** Long answers take the room only bit by bit: with them a cell needs more time to show it. */
const SECONDS = 60
const SECONDS_LONG = 120
const LONG_ANSWER_TOKENS = 2_000
/** Answers of a mix. */
const SHORT_TOKENS = 50
const LONG_TOKENS = 8_000
const LONG_RATIOS = { mixed5: 0.05, mixed30: 0.3 }
/** Chats a second of each calm tenant and replica: an engine does 24 such, so half of a third. */
const CALM_PER_S = 4
/**
 * Requests of the offender in a run: tiny requests at many times the share of eight replicas would be millions. Such a
 * cell is shorter, down to this many seconds, and then asks for fewer; its row says for how much.
 */
const REQUESTS_MAX = 45_000
const SECONDS_MIN = 15
/** What a lying client asks for. */
const LIE_TOKENS = 16_000
const BURST = { times: 20, everyS: 20, forS: 5 }
/** A saturating offer, where it is asked what the offender could do alone. */
export const SATURATING_TIMES = 10
const KEYS = 16
const ORG_TENANTS = 4

const SLOS = [
  { name: 'fast', ttftMs: 1_000, interTokenMs: 50, totalMs: 300_000 },
  { name: 'steady', ttftMs: 2_000, interTokenMs: 100, totalMs: 300_000 },
  { name: 'patient', ttftMs: 10_000, interTokenMs: 250, totalMs: 600_000 },
]

export interface Staging {
  /** Which of the streams are there. */
  readonly who: 'calm' | 'offender' | 'both'
  /** Instead of the cell's own. */
  readonly seconds?: number | undefined
  /** The offender asks for this many times its share at least. */
  readonly timesMin?: number
}

export interface Staged {
  readonly scenario: Scenario
  readonly fromS: number
  readonly toS: number
  readonly offenderIds: ReadonlySet<string>
  /** Requests of the offender a second, in bursts the mean, and multiples of its share. */
  readonly ratePerS: number
  readonly times: number
}

export function stageCell(cell: Cell, prices: FullWorkPrices, staging: Staging): Staged {
  const { offence } = cell
  const seconds = secondsOf(cell, prices, staging.seconds)
  const toS = WARMUP_S + seconds
  const offered = offeredBy(cell, prices, seconds, staging.timesMin ?? 0)
  const offenders = offendersOf(offence)
  const streams = [
    ...(staging.who === 'offender' ? [] : CALM_IDS.map((id) => calmStream(cell, id))),
    ...(staging.who === 'calm' ? [] : offenders.ids.flatMap((id) => offenderStreams(cell, offered, id, offenders))),
  ]
  const tree = {
    name: cell.id,
    about: 'A cell of the isolation grid.',
    durationS: toS,
    warmupS: WARMUP_S,
    platform: {
      // Room for the longest prompt and for what a lying client asks for.
      models: [{ name: 'chat', contextTokensMax: 49_152 }],
      pools: [{ model: 'chat', backend: { kind: 'simulated', profile: PROFILE }, replicas: offence.replicas }],
      slos: SLOS,
      orgs: offence.from === 'org' ? [{ id: 'offenders', weight: 1 }] : [],
      tenants: [
        { id: 'calm-a', slo: 'fast', contract: 'reject' },
        { id: 'calm-b', slo: 'steady', contract: 'reject' },
        ...offenders.tenants,
      ],
    },
    workload: streams,
  }
  const scenario = checkScenario({ path: cell.id, tree, lineOf: () => undefined }, tree)
  return { scenario, fromS: WARMUP_S, toS, offenderIds: new Set(offenders.ids), ...offered }
}

/** How long the offender is there. */
export function secondsOf(cell: Cell, prices: FullWorkPrices, instead?: number): number {
  const { answer } = cell.offence
  const isLong = typeof answer === 'string' || answer >= LONG_ANSWER_TOKENS
  const seconds = instead ?? cell.seconds ?? (isLong ? SECONDS_LONG : SECONDS)
  const { ratePerS } = wishOf(cell, prices, 0)
  return Math.min(seconds, Math.max(SECONDS_MIN, Math.round(REQUESTS_MAX / ratePerS)))
}

interface Offenders {
  readonly ids: readonly string[]
  readonly tenants: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** Streams that send: each key of a tenant sends the tenant's stream. */
  readonly senders: number
}

/** Interactive offenders share a promise, and what is learned of it, with a calm tenant; others wait longer. */
function offendersOf({ band, from }: Offence): Offenders {
  const like = { slo: band === 'interactive' ? 'steady' : 'patient', contract: 'reject' }
  if (from === 'org') {
    const ids = Array.from({ length: ORG_TENANTS }, (_, i) => `offender-${i + 1}`)
    return { ids, tenants: ids.map((id) => ({ ...like, id, org: 'offenders' })), senders: ORG_TENANTS }
  }
  const senders = from === 'keys' ? KEYS : 1
  const keys = Array.from({ length: senders }, (_, i) => ({ id: `key-${i + 1}`, hash: hashKey(`offender ${i + 1}`) }))
  return { ids: ['offender'], tenants: [{ ...like, id: 'offender', keys }], senders }
}

/** At least `timesMin` times its share, but no more requests than a run may have. */
function offeredBy(
  cell: Cell,
  prices: FullWorkPrices,
  seconds: number,
  timesMin: number,
): { ratePerS: number; times: number } {
  const wish = wishOf(cell, prices, timesMin)
  const ratePerS = Math.min(wish.ratePerS, REQUESTS_MAX / seconds)
  return { ratePerS, times: ratePerS / wish.sharePerS }
}

function wishOf(cell: Cell, prices: FullWorkPrices, timesMin: number): { ratePerS: number; sharePerS: number } {
  const { prompt: promptTokens, replicas, times } = cell.offence
  const { shortRatio, shortTokens, longTokens } = answersOf(cell.offence)
  const meanWorkS =
    shortRatio * workS(prices, { promptTokens, outputTokens: shortTokens }) +
    (1 - shortRatio) * workS(prices, { promptTokens, outputTokens: longTokens })
  const sharePerS = (SHARE * replicas) / meanWorkS
  const wanted = times === 'bursts' ? (BURST.times * BURST.forS) / BURST.everyS : times
  return { ratePerS: Math.max(cell.ratePerS ?? wanted * sharePerS, timesMin * sharePerS), sharePerS }
}

function answersOf({ answer }: Offence): { shortRatio: number; shortTokens: number; longTokens: number } {
  if (typeof answer === 'number') return { shortRatio: 1, shortTokens: answer, longTokens: answer }
  return { shortRatio: 1 - LONG_RATIOS[answer], shortTokens: SHORT_TOKENS, longTokens: LONG_TOKENS }
}

const calmStream = ({ offence: { replicas }, calmPerS = CALM_PER_S }: Cell, tenant: string) => ({
  tenant,
  model: 'chat',
  band: tenant === 'calm-a' ? 'interactive' : 'standard',
  arrivals: { kind: 'poisson', ratePerS: calmPerS * replicas },
  // Azure's conversations of 2023.
  prompt: quantiles([0, 16], [0.5, 1_020], [0.9, 2_734], [0.99, 4_142], [1, 6_000]),
  output: quantiles([0, 8], [0.5, 129], [0.9, 424], [0.99, 601], [1, 800]),
})

const quantiles = (...points: ReadonlyArray<readonly [number, number]>) => ({ kind: 'quantiles', points })

function offenderStreams(
  cell: Cell,
  { ratePerS }: { readonly ratePerS: number },
  tenant: string,
  { senders }: Offenders,
): unknown[] {
  const { offence } = cell
  const { shortRatio, shortTokens, longTokens } = answersOf(offence)
  const isBursty = offence.times === 'bursts' && cell.ratePerS === undefined
  const duty = isBursty ? BURST.forS / BURST.everyS : 1
  const stream = (ratio: number, tokens: number) => ({
    tenant,
    model: 'chat',
    band: offence.band,
    fromS: WARMUP_S,
    arrivals: { kind: 'poisson', ratePerS: (ratio * ratePerS) / duty / senders },
    ...(isBursty && { phases: pauses() }),
    prompt: { kind: 'fixed', tokens: offence.prompt },
    output: { kind: 'fixed', tokens },
    maxTokens: { declared: 'exact', unset: 'unset', lying: LIE_TOKENS }[offence.maxTokens],
    ...leavesOf(cell),
  })
  const streams = [stream(shortRatio, shortTokens)]
  if (shortRatio < 1) streams.push(stream(1 - shortRatio, longTokens))
  return streams
}

/** Bursts begin with the offender. */
const pauses = () =>
  Array.from({ length: PAUSES_MAX }, (_, i) => ({
    fromS: WARMUP_S + i * BURST.everyS + BURST.forS,
    toS: WARMUP_S + (i + 1) * BURST.everyS,
    factor: 0,
  }))

/** More than the longest cell has. */
const PAUSES_MAX = 30

const LEAVING = { early: { min: 300, max: 800 }, late: { min: 4_000, max: 15_000 } }

function leavesOf({ offence: { client }, leaveAfterMs }: Cell): { leaveAfterMs?: unknown } {
  if (leaveAfterMs !== undefined) return { leaveAfterMs: { min: leaveAfterMs, max: leaveAfterMs, ratio: 1 } }
  return client === 'stays' ? {} : { leaveAfterMs: { ...LEAVING[client], ratio: 1 } }
}
