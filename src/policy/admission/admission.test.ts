import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeRelease } from '../../../test/support/fleet.ts'
import type { Model } from '../../domain/fleet.ts'
import type { NoPlace } from '../../domain/no-place.ts'
import type { Refusal } from '../../domain/outcome.ts'
import type { Request, Segment } from '../../domain/request.ts'
import type { Tenant } from '../../domain/tenant.ts'
import { DEFAULT_RUNGS } from '../ladder/rungs.ts'
import { makeConstantSpeed } from '../planning/cost.ts'
import { decideAdmission, type Verdict } from './admission.ts'
import type { AdmissionPool, AdmissionQuestion, BehindReturns, CalibratedTerms } from './admission-world.ts'
import { patienceOf } from './feasibility.ts'

const MS = 1_000
const NOW = 1_000_000_000

const tenant: Tenant = {
  id: 'acme',
  orgId: 'acme',
  weight: 1,
  slo: { name: 'fast', ttftUs: 500 * MS, interTokenUs: 50 * MS, totalUs: 10_000 * MS },
  bands: ['interactive', 'standard', 'offline'],
  allowance: {},
  bidMax: 0,
  contract: 'degrade',
  queueUsMax: 10_000 * MS,
}

const segments: readonly Segment[] = [
  { role: 'system', tokens: 100 },
  { role: 'user', tokens: 500 },
  { role: 'assistant', tokens: 1_000 },
  { role: 'user', tokens: 400 },
]

function requestOf(over: Partial<Request> = {}): Request {
  return {
    id: 'r',
    tenant,
    key: { id: 'k', tenantId: 'acme', weight: 1, allowance: {} },
    kind: 'chat',
    model: 'big',
    segments,
    prefixHashes: [],
    outputTokensMax: 1_000,
    choiceCount: 1,
    isStreamed: true,
    band: 'standard',
    bid: 0,
    slo: tenant.slo,
    arrivedAt: NOW,
    deadlineAt: NOW + 10_000 * MS,
    text: undefined,
    ...over,
  }
}

const model = (name: string, fallback?: string): Model => ({
  name,
  aliases: [],
  contextTokensMax: 8_192,
  outputTokensDefault: 512,
  fallback,
  createdAtS: 0,
  releases: [`${name}@1`],
})
const MODELS = new Map([
  ['big', model('big', 'small')],
  ['small', model('small')],
])

/** A pool, and what the world says of it. */
interface PoolSaid extends AdmissionPool {
  readonly waitUs: number
  readonly waitWithoutOwnUs: number
  readonly waitWithReturns?: BehindReturns
  readonly noPlace: NoPlace | undefined
  readonly terms: CalibratedTerms
}

function poolOf(name: string, over: Partial<PoolSaid> = {}): PoolSaid {
  // 0.05 ms a prompt token, 10 ms an output token: 2,000 tokens prefill in 100 ms; 600 tokens of answer take 6 s.
  const speed = makeConstantSpeed({ prefillUsPerToken: 50, tokenUs: 10 * MS })
  return {
    poolId: `${name}-pool`,
    readyReplicaCount: 2,
    hasIdleReplica: false,
    kvTokensMax: 100_000,
    speed,
    speedAlone: speed,
    waitUs: 0,
    waitWithoutOwnUs: 0,
    noPlace: undefined,
    terms: { ttft: { biasRatio: 1, marginRatio: 0.1 }, finish: { biasRatio: 1, marginRatio: 0.1 } },
    ...over,
  }
}

interface World {
  readonly big?: Partial<PoolSaid>
  readonly small?: Partial<PoolSaid>
  readonly asked?: Partial<AdmissionQuestion>
  readonly budgetRefusal?: Refusal
  readonly budgetTokensMax?: number
  readonly outputTokens?: number
  /** The lane takes only plans with at most this much engine time. */
  readonly laneUsLeft?: number
}

const FREE = { version: '', inputNano: 0, cachedNano: 0, outputNano: 0, requestNano: 0 }

function decide(request: Request, world: World = {}): Verdict {
  const pools = new Map([
    ['big', poolOf('big', world.big)],
    ['small', poolOf('small', world.small)],
  ])
  const said = (pool: AdmissionPool): PoolSaid => pool as PoolSaid
  const asked: AdmissionQuestion = {
    request,
    price: FREE,
    release: makeRelease(MODELS.get(request.model) as Model),
    poolId: `${request.model}-pool`,
    patience: patienceOf(NOW, request),
    rungs: DEFAULT_RUNGS,
    dwellingDepth: 0,
    isOfflineShed: false,
    isEnforced: true,
    jitter: 0,
    ...world.asked,
  }
  return decideAdmission(NOW, asked, {
    planning: {
      model: (name) => MODELS.get(name),
      releaseOf: (name) => makeRelease(MODELS.get(name) as Model),
      speedOf: (releaseId) => (pools.get(releaseId.split('@')[0] as string) as PoolSaid).speed,
      correctTokens: (_request, _model, tokens) => tokens,
      predictOutput: (_, cap) => ({
        tokens: Math.min(cap, world.outputTokens ?? 600),
        tokensHigh: cap,
        tokensMean: Math.min(cap, world.outputTokens ?? 600),
        source: 'habit',
      }),
      cachedTokensOf: () => 0,
      outputWeight: 4,
    },
    poolFor: (_now, _asked, plan) => pools.get(plan.model),
    waitUs: (_now, _asked, pool) => said(pool).waitUs,
    waitWithReturns: (_now, _asked, pool) => said(pool).waitWithReturns,
    waitWithoutOwnUs: (_now, _asked, pool) => said(pool).waitWithoutOwnUs,
    noPlaceFor: (_asked, pool, { estimate }) =>
      estimate.engineUs > (world.laneUsLeft ?? Number.POSITIVE_INFINITY) ? WORK_FULL : said(pool).noPlace,
    termsFor: (_asked, pool) => said(pool).terms,
    budgetRefusal: () => world.budgetRefusal,
    budgetTokensMax: () => world.budgetTokensMax ?? Number.POSITIVE_INFINITY,
  })
}

const LANE_FULL: NoPlace = { code: 'lane-full', because: 'full' }
const WORK_FULL: NoPlace = { code: 'lane-work-full', because: 'too much work' }

const waits = (waitUs: number, waitWithoutOwnUs = waitUs): Partial<PoolSaid> => ({ waitUs, waitWithoutOwnUs })

const refusalOf = (verdict: Verdict): Refusal => {
  expect(verdict.kind).toBe('rejected')
  return (verdict as Verdict & { kind: 'rejected' }).refusal
}

const rungOf = (verdict: Verdict): string => (verdict.kind === 'admitted' ? verdict.rung.name : verdict.refusal.code)

describe('admission', () => {
  it('admits in full what fits, and says what it predicted', () => {
    expect(decide(requestOf())).toMatchObject({
      kind: 'admitted',
      rung: { name: 'full' },
      poolId: 'big-pool',
      reserveTokens: 3_000,
      predicted: { waitUs: 0, ttftUs: 100_000, finishUs: 6_090_000 },
      offeredCost: 2_000 + 4 * 600,
      pressure: 0,
    })
  })

  it('weighs every request in full and by its wait, whichever way it goes', () => {
    const busy = waits(175 * MS)
    const deep = { dwellingDepth: 2 }
    // 450 ms less 25 ms of prefill (500 tokens are kept) can be waited: 175 ÷ 425.
    expect(decide(requestOf(), { big: busy, asked: deep })).toMatchObject({ offeredCost: 4_400, pressure: 175 / 425 })
    const late = waits(5_000 * MS)
    expect(decide(requestOf(), { big: late, small: late })).toMatchObject({ kind: 'rejected', pressure: 4 })
  })

  it('walks down to the first rung that fits', () => {
    // First token: 450 ms allowed. Full needs 360 + 100; half the context needs 360 + 45.
    expect(rungOf(decide(requestOf(), { big: waits(360 * MS) }))).toBe('trim-context')
    // The deadline leaves 4.5 s: only a capped answer is done by then.
    expect(rungOf(decide(requestOf({ deadlineAt: NOW + 5_000 * MS })))).toBe('cap-output')
    expect(rungOf(decide(requestOf(), { big: waits(5_000 * MS) }))).toBe('smaller-model')
  })

  it('starts at the dwelling rung and never above it', () => {
    expect(rungOf(decide(requestOf(), { asked: { dwellingDepth: 3 } }))).toBe('cap-output')
  })

  it('names the shallowest rung that asks for the same work', () => {
    const nothingToTrim = requestOf({ segments: [{ role: 'user', tokens: 100 }], outputTokensMax: 50 })
    expect(rungOf(decide(requestOf(), { asked: { dwellingDepth: 1 } }))).toBe('full')
    expect(rungOf(decide(nothingToTrim, { asked: { dwellingDepth: 3 } }))).toBe('full')
    const retrieval = { corpus: 'manuals', query: 'why?', passagesMax: 5 }
    expect(rungOf(decide(requestOf({ retrieval }), { asked: { dwellingDepth: 1 } }))).toBe('trim-retrieval')
    expect(
      rungOf(decide(requestOf({ retrieval: { ...retrieval, passagesMax: 2 } }), { asked: { dwellingDepth: 1 } })),
    ).toBe('full')
  })

  it('skips rungs that give up nothing more', () => {
    const short = requestOf({ segments: [{ role: 'user', tokens: 100 }], outputTokensMax: 50 })
    const verdict = decide(short, { big: waits(5_000 * MS), small: waits(5_000 * MS) })
    expect(refusalOf(verdict).code).toBe('predicted-late')
  })

  it('refuses a tenant who would rather be refused than be served less', () => {
    const proud = requestOf({ tenant: { ...tenant, contract: 'reject' } })
    const refusal = refusalOf(decide(proud, { big: waits(360 * MS) }))
    expect(refusal).toMatchObject({ code: 'predicted-late', detail: { rung: 'full', missed: 'ttft' } })
  })

  it('blames the tenant for its own queue and the platform for the rest', () => {
    const both = (own: number, other: number): World => ({ big: waits(own, other), small: waits(own, other) })
    expect(refusalOf(decide(requestOf(), both(5_000 * MS, 0))).blame).toBe('tenant')
    expect(refusalOf(decide(requestOf(), both(5_000 * MS, 5_000 * MS))).blame).toBe('platform')
  })

  it.each([
    ['its own queue', waits(5_000 * MS, 0), {}, 'own-queue', /tenant's own requests.* stand before it for 5000 ms/],
    ['the queue of others', waits(5_000 * MS, 4_000 * MS), {}, 'others-queue', /requests of others .* for 4000 ms/],
    [
      'the engine’s first token',
      { ...waits(0), speed: makeConstantSpeed({ prefillUsPerToken: 3_000, tokenUs: 10 * MS }) },
      {},
      'first-token',
      /by 1050 ms.*slow to its first token, and needs 1500 ms for this prompt of 500 tokens \(0 of them cached\)/,
    ],
    [
      'the answer',
      { ...waits(100 * MS, 100 * MS), speed: makeConstantSpeed({ prefillUsPerToken: 50, tokenUs: 30 * MS }) },
      { deadlineAt: NOW + 7_000 * MS },
      'answer',
      /miss its deadline of 7000 ms by .*its 384 tokens take the engine 11490 ms/,
    ],
  ])('names what is slow: %s', (_what, pool, over, slowest, words) => {
    const refusal = refusalOf(decide(requestOf(over), { big: pool, small: pool, outputTokens: 600 }))
    expect(refusal.because).toMatch(words)
    const { detail = {} } = refusal
    expect(detail['slowest']).toBe(slowest)
    const parts = ['own_queue_ms', 'others_queue_ms', 'first_token_ms', 'answer_ms'].map((name) => Number(detail[name]))
    const total = detail['missed'] === 'ttft' ? detail['predicted_ttft_ms'] : detail['predicted_finish_ms']
    expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(Number(total), -1)
  })

  it('says what would have fitted, and when to come back', () => {
    const busy = waits(2_000 * MS)
    const refusal = refusalOf(decide(requestOf(), { big: busy, small: busy }))
    // The nearest try keeps 500 of 2,000 prompt tokens: first token at 2,025 ms against 450 allowed.
    expect(refusal.retryAfterUs).toBe(1_575 * MS)
    expect(refusal.detail).toMatchObject({ predicted_wait_ms: 2_000, ttft_ms: 500, fitting_ttft_ms: 2_250 })
    expect(rungOf(decide(requestOf({ slo: { ...tenant.slo, ttftUs: 2_251 * MS } }), { big: busy, small: busy }))).toBe(
      'trim-context',
    )
  })

  it('calls it the request’s fault when not even an idle engine could make it', () => {
    const hasty = requestOf({ deadlineAt: NOW + 20 * MS })
    for (const hasIdleReplica of [true, false]) {
      const world = { big: { hasIdleReplica }, small: { hasIdleReplica } }
      expect(refusalOf(decide(hasty, world))).toMatchObject({
        code: 'deadline-infeasible',
        blame: 'request',
        retryAfterUs: undefined,
      })
    }
  })

  it('asks budgets first and says what they say', () => {
    const over: Refusal = { code: 'rate-limit-tokens', because: 'over', blame: 'tenant', retryAfterUs: 5 }
    expect(refusalOf(decide(requestOf(), { budgetRefusal: over }))).toBe(over)
  })

  it('passes on why a lane is full, after trying what is smaller', () => {
    const isFull = { noPlace: LANE_FULL, waitUs: 100 * MS }
    const refusal = refusalOf(decide(requestOf(), { big: isFull, small: isFull }))
    // 100 ms is what a newcomer would wait for a turn, and at least 0 of 250 ms of jitter come on top.
    expect(refusal).toMatchObject({ code: 'lane-full', because: 'full', blame: 'tenant', retryAfterUs: 100 * MS })
    expect(rungOf(decide(requestOf(), { big: isFull }))).toBe('smaller-model')
  })

  it('admits on the first rung whose work still has a place in the lane', () => {
    // In full 6.09 s of engine time, with half of the context 6.035 s, capped 3.875 s.
    expect(rungOf(decide(requestOf(), { laneUsLeft: 7_000 * MS }))).toBe('full')
    expect(rungOf(decide(requestOf(), { laneUsLeft: 6_050 * MS }))).toBe('trim-context')
    expect(rungOf(decide(requestOf(), { laneUsLeft: 5_000 * MS }))).toBe('cap-output')
    const proud = requestOf({ tenant: { ...tenant, contract: 'reject' } })
    expect(refusalOf(decide(proud, { laneUsLeft: 5_000 * MS }))).toMatchObject({
      code: 'lane-work-full',
      blame: 'tenant',
    })
  })

  it('asks neither budgets nor places when nothing is enforced', () => {
    const over: Refusal = { code: 'rate-limit-tokens', because: 'over', blame: 'tenant', retryAfterUs: 5 }
    const world = { big: { noPlace: LANE_FULL }, budgetRefusal: over, asked: { isEnforced: false } }
    expect(rungOf(decide(requestOf(), world))).toBe('full')
  })

  it('sheds a band on the dwelling rung, or the offline band for everybody', () => {
    const offline = requestOf({ band: 'offline' })
    expect(refusalOf(decide(offline, { asked: { dwellingDepth: 5 } }))).toMatchObject({
      code: 'band-shed',
      blame: 'tenant',
    })
    expect(refusalOf(decide(offline, { asked: { isOfflineShed: true } }))).toMatchObject({ blame: 'platform' })
    expect(decide(requestOf(), { asked: { isOfflineShed: true } }).kind).toBe('admitted')
  })

  it('tells what is too long, too big or has nowhere to run apart', () => {
    const long = requestOf({ segments: [{ role: 'user', tokens: 9_000 }] })
    expect(refusalOf(decide(long))).toMatchObject({ code: 'context-length-exceeded', blame: 'request' })
    const small = { kvTokensMax: 500 }
    expect(refusalOf(decide(requestOf(), { big: small, small })).code).toBe('too-big')
    const gone = { readyReplicaCount: 0 }
    expect(refusalOf(decide(requestOf(), { big: gone, small: gone }))).toMatchObject({
      code: 'no-replica',
      blame: 'platform',
    })
  })

  it('refuses nothing for its size that was not counted', () => {
    const long = requestOf({ segments: [{ role: 'user', tokens: 9_000 }], isEstimated: true })
    expect(decide(long).kind).toBe('admitted')
    // It fills what memory there is, and holds no more of it.
    const small = { kvTokensMax: 2_000 }
    const verdict = decide(long, { big: small, small })
    expect(verdict.kind === 'admitted' && verdict.plan.estimate.promptTokens).toBe(2_000 - 256)
    // What could be done in time were it half as long is not called infeasible.
    const slow = makeConstantSpeed({ prefillUsPerToken: 1_000, tokenUs: 10 * MS })
    const pool = { speedAlone: slow, hasIdleReplica: true }
    const soon = requestOf({ segments: [{ role: 'user', tokens: 2_000 }], outputTokensMax: 1 })
    const patience = { slo: { ...soon.slo, ttftUs: 1_500 * MS } }
    expect(refusalOf(decide({ ...soon, ...patience }, { big: pool, small: pool })).code).toBe('deadline-infeasible')
    expect(decide({ ...soon, ...patience, isEstimated: true }, { big: pool, small: pool }).kind).toBe('admitted')
  })

  it('asks budgets for no more than they ever have, unless the prompt is more at its least', () => {
    const request = requestOf({ segments: [{ role: 'user', tokens: 6_500 }], outputTokensMax: 100 })
    const reserved = (over: Partial<Request>, budgetTokensMax: number): number | undefined => {
      const verdict = decide({ ...request, ...over }, { budgetTokensMax })
      return verdict.kind === 'admitted' ? verdict.reserveTokens : undefined
    }
    expect(reserved({}, 6_000)).toBe(6_600)
    expect(reserved({ isEstimated: true }, 7_000)).toBe(6_600)
    expect(reserved({ isEstimated: true }, 6_000)).toBe(6_000)
    expect(reserved({ isEstimated: true }, 3_000)).toBe(3_350)
  })

  it('never refuses for lateness or room while a replica is idle and the request alone is feasible', () => {
    fc.assert(
      fc.property(
        fc.record({
          waitUs: fc.nat(60_000_000),
          biasRatio: fc.double({ min: 0.25, max: 4, noNaN: true }),
          marginRatio: fc.double({ min: 0, max: 0.9, noNaN: true }),
          isLaneFull: fc.boolean(),
          dwellingDepth: fc.nat(5),
          band: fc.constantFrom('interactive' as const, 'standard' as const, 'offline' as const),
          contract: fc.constantFrom('degrade' as const, 'reject' as const),
        }),
        ({ waitUs, biasRatio, marginRatio, isLaneFull, dwellingDepth, band, contract }) => {
          const pool: Partial<PoolSaid> = {
            hasIdleReplica: true,
            waitUs,
            waitWithoutOwnUs: waitUs,
            noPlace: isLaneFull ? LANE_FULL : undefined,
            terms: { ttft: { biasRatio, marginRatio }, finish: { biasRatio, marginRatio } },
          }
          const request = requestOf({ band, tenant: { ...tenant, contract } })
          expect(decide(request, { big: pool, small: pool, asked: { dwellingDepth } }).kind).toBe('admitted')
        },
      ),
    )
  })
})
