import { unreachable } from '../../base/assert.ts'
import { type Instant, usToMs } from '../../base/clock.ts'
import type { NoPlace } from '../../domain/no-place.ts'
import type { Refusal, RefusalCode } from '../../domain/outcome.ts'
import type { Plan } from '../../domain/plan.ts'
import type { Request, RequestKind } from '../../domain/request.ts'
import type { AdmissionQuestion, AdmissionWorld, Try } from './admission-world.ts'
import { latenessOf, predict } from './feasibility.ts'
import { retryAfterUs } from './retry-after.ts'

/**
 * How do we say no? In words for a person, a code for a metric, numbers for a client that adapts, and a time that is
 * true. Blame decides between 429 and 503: when the request would have fitted had its own tenant nothing waiting, the
 * tenant is over its share; otherwise the platform is full. What is predicted late names the part of its time that is
 * slow: the engine's first token, the answer, the queue of others or its own share. Codes are stable: they are metric labels and appear in
 * error bodies and in the documentation.
 */

const wholeMs = (us: number): number => Math.round(usToMs(us))

export function predictedLate(now: Instant, asked: AdmissionQuestion, world: AdmissionWorld, late: Try): Refusal {
  const { patience, lateness, pool, plan, terms } = late
  if (pool.wakingUs !== undefined) return stillWaking(asked, late, pool.wakingUs)
  const promisedUs = lateness.promise === 'ttft' ? patience.ttftUs : patience.finishUs
  const withoutOwnUs = world.waitWithoutOwnUs(now, asked, pool, plan)
  const alone = latenessOf(predict(plan, asked.request.choiceCount, pool.speed, withoutOwnUs), patience, terms)
  const blame = alone.lateUs <= 0 ? 'tenant' : 'platform'
  const parts = partsOf(late, withoutOwnUs)
  // Without its own queue the request would be in time: whatever else takes long, this is what the tenant can change.
  const slowest = blame === 'tenant' ? 'own-queue' : largestOf(parts)
  return {
    code: 'predicted-late',
    because:
      `predicted to miss its ${lateness.promise} of ${wholeMs(promisedUs)} ms by ${inMs(lateness.lateUs)}, margin ` +
      `included: ${WHAT_IS_SLOW[slowest](inMs(parts[slowest]), plan)}, of ${inMs(lateness.predictedUs)} in all`,
    blame,
    retryAfterUs: retryAfterUs({ predictedUs: lateness.lateUs, affordableUs: 0, jitter: asked.jitter }),
    detail: {
      ...numbersOf(late),
      pool: pool.poolId,
      rung: plan.rung.name,
      missed: lateness.promise,
      slowest,
      own_queue_ms: finiteMs(parts['own-queue']),
      others_queue_ms: finiteMs(parts['others-queue']),
      first_token_ms: finiteMs(parts['first-token']),
      answer_ms: finiteMs(parts.answer),
      ...whatWouldFit(asked.request, late),
    },
  }
}

/** It would fit, but the room is promised to others, who were told to come back about now. */
export function keptForReturns({ jitter }: AdmissionQuestion, kept: Try): Refusal {
  const { behindReturns, pool, plan } = kept
  const { lateUs, promise } = behindReturns?.lateness ?? kept.lateness
  return {
    code: 'predicted-late',
    because:
      `the room is kept for requests that were told to come back now: behind them it would miss its ` +
      `${promise} by ${inMs(lateUs)}, margin included`,
    blame: behindReturns?.blame ?? 'platform',
    retryAfterUs: retryAfterUs({ predictedUs: lateUs, affordableUs: 0, jitter }),
    detail: { ...numbersOf(kept), pool: pool.poolId, rung: plan.rung.name, slowest: 'returns' },
  }
}

/** The pool sleeps, and its first replica comes too late for the deadline: the client comes back when it is there. */
function stillWaking({ jitter }: AdmissionQuestion, late: Try, wakingUs: number): Refusal {
  const { lateness, pool, plan } = late
  return {
    code: 'predicted-late',
    because:
      `no replica of ${pool.poolId} is ready yet: one is expected in ${inMs(wakingUs)}, and the request would miss its ` +
      `deadline by ${inMs(lateness.lateUs)}, margin included`,
    blame: 'platform',
    retryAfterUs: retryAfterUs({ predictedUs: wakingUs, affordableUs: 0, jitter }),
    detail: {
      ...numbersOf(late),
      pool: pool.poolId,
      rung: plan.rung.name,
      missed: lateness.promise,
      waking_ms: wholeMs(wakingUs),
    },
  }
}

/** What the predicted time consists of, in microseconds, each corrected as the whole is: together they are the whole. */
type LateParts = Readonly<Record<'own-queue' | 'others-queue' | 'first-token' | 'answer', number>>

function partsOf({ predicted, lateness, terms }: Try, withoutOwnUs: number): LateParts {
  const isTtft = lateness.promise === 'ttft'
  const { biasRatio } = isTtft ? terms.ttft : terms.finish
  const { waitUs, ttftUs, finishUs } = predicted
  // An endless wait is everybody's: no share of it can be told apart.
  const othersUs = Number.isFinite(waitUs) ? Math.min(waitUs, withoutOwnUs) : waitUs
  return {
    'own-queue': Number.isFinite(waitUs) ? (waitUs - othersUs) * biasRatio : 0,
    'others-queue': othersUs * biasRatio,
    'first-token': Number.isFinite(waitUs) ? (ttftUs - waitUs) * biasRatio : 0,
    answer: isTtft || !Number.isFinite(waitUs) ? 0 : (finishUs - ttftUs) * biasRatio,
  }
}

function largestOf(parts: LateParts): keyof LateParts {
  let largest: keyof LateParts = 'others-queue'
  for (const name of Object.keys(parts) as Array<keyof LateParts>) if (parts[name] > parts[largest]) largest = name
  return largest
}

/** Each part in words that say where to look. */
const WHAT_IS_SLOW: Readonly<Record<keyof LateParts, (time: string, plan: Plan) => string>> = {
  'own-queue': (time) => `the tenant's own requests, which have used up its share, stand before it for ${time}`,
  'others-queue': (time) => `the queue is long, and requests of others stand before it for ${time}`,
  'first-token': (time, { estimate: { promptTokens, cachedTokens } }) =>
    `the engine is slow to its first token, and needs ${time} for this prompt of ${promptTokens} tokens ` +
    `(${cachedTokens} of them cached)`,
  answer: (time, { estimate: { outputTokens } }) =>
    `the answer is long, and its ${Math.round(outputTokens)} tokens take the engine ${time}`,
}

export function bandShed({ request, isOfflineShed, jitter }: AdmissionQuestion, attempt: Try): Refusal {
  const isPlatform = request.band === 'offline' && isOfflineShed
  return {
    code: 'band-shed',
    because: isPlatform
      ? `the platform is under pressure and takes no ${request.band} work`
      : `${request.tenant.id} is under pressure and its ${request.band} work is shed first`,
    blame: isPlatform ? 'platform' : 'tenant',
    // Pressure must fall before the band is taken again: not before what waits now is gone.
    retryAfterUs: retryAfterUs({ predictedUs: attempt.predicted.waitUs, affordableUs: 0, jitter }),
    detail: { ...numbersOf(attempt), band: request.band },
  }
}

/** Not even an idle engine could make it: the client must ask for less or allow more time. */
export function deadlineInfeasible(now: Instant, request: Request, attempt: Try): Refusal {
  const { plan, pool, patience } = attempt
  const alone = predict(plan, request.choiceCount, pool.speedAlone, 0)
  return {
    code: 'deadline-infeasible',
    because:
      `even an idle engine needs ${wholeMs(alone.ttftUs)} ms to the first token and ${wholeMs(alone.finishUs)} ms ` +
      `in all; allowed are ${allowed(patience.ttftUs)} and ${allowed(patience.finishUs)}`,
    blame: 'request',
    retryAfterUs: undefined,
    detail: {
      deadline_ms: wholeMs(request.deadlineAt - now),
      fitting_ttft_ms: wholeMs(alone.ttftUs),
      fitting_deadline_ms: wholeMs(alone.finishUs),
    },
  }
}

export function tooBigForKv(attempt: Try): Refusal {
  const { promptTokens, outputTokensHigh } = attempt.plan.estimate
  const { kvTokensMax } = attempt.pool
  return {
    code: 'too-big',
    because: `prompt and answer need room for ${promptTokens + outputTokensHigh} tokens; an engine has ${kvTokensMax}`,
    blame: 'request',
    retryAfterUs: undefined,
    detail: { needed_tokens: promptTokens + outputTokensHigh, tokens_max: kvTokensMax },
  }
}

export function contextTooLong(
  { kind }: Request,
  { code, because }: { readonly code: RefusalCode; readonly because: string },
): Refusal {
  const param = code === 'context-length-exceeded' ? { param: PROMPT_PARAMS[kind] } : {}
  return { code, because, blame: 'request', retryAfterUs: undefined, ...param }
}

/** Where each kind of request has what may be too long. */
const PROMPT_PARAMS: Readonly<Record<RequestKind, string>> = {
  chat: 'messages',
  completion: 'prompt',
  embedding: 'input',
  tensors: 'inputs',
  transit: 'model',
}

export function noReplica(request: Request, jitter: number): Refusal {
  return {
    code: 'no-replica',
    because: `no replica of ${request.model} is ready`,
    blame: 'platform',
    // Nobody knows when a replica comes back; health checks look every few seconds.
    retryAfterUs: retryAfterUs({ predictedUs: NO_REPLICA_RETRY_US, affordableUs: 0, jitter }),
  }
}

/** Only a person can mend that, so nobody is told to come back. */
export function poolDenied(because: string): Refusal {
  return { code: 'replica-denied', because, blame: 'platform', retryAfterUs: undefined }
}

/** Microseconds: a few health checks from now. */
export const NO_REPLICA_RETRY_US = 5_000_000

/** The queue has no place: whose doing is that, and when will there be one? */
export function withoutPlace({ code, because }: NoPlace, waitUs: number, jitter: number): Refusal {
  switch (code) {
    case 'lane-full':
    case 'lane-work-full':
      return { code, because, blame: 'tenant', retryAfterUs: afterWait(waitUs, jitter) }
    case 'queue-full':
    case 'unknown-pool':
      return { code, because, blame: 'platform', retryAfterUs: afterWait(waitUs, jitter) }
    case 'expired-on-arrival':
    case 'fits-no-replica':
      return { code, because, blame: 'request', retryAfterUs: undefined }
    default:
      return unreachable(code)
  }
}

const afterWait = (waitUs: number, jitter: number): number | undefined =>
  retryAfterUs({ predictedUs: waitUs, affordableUs: 0, jitter })

function numbersOf(attempt: Try): Record<string, number | string> {
  const { predicted, patience } = attempt
  const numbers: Record<string, number | string> = {
    predicted_wait_ms: finiteMs(predicted.waitUs),
    predicted_ttft_ms: finiteMs(predicted.ttftUs),
    predicted_finish_ms: finiteMs(predicted.finishUs),
    deadline_ms: wholeMs(patience.finishUs),
  }
  if (Number.isFinite(patience.ttftUs)) numbers['ttft_ms'] = wholeMs(patience.ttftUs)
  return numbers
}

/** The least that the client would have to change for this to be admitted now. */
function whatWouldFit(request: Request, late: Try): Record<string, number> {
  const { plan, pool, predicted, patience, terms } = late
  const { ttft, finish } = terms
  const fitting: Record<string, number> = {}
  if (!Number.isFinite(predicted.finishUs)) return fitting
  if (Number.isFinite(patience.ttftUs)) {
    fitting['fitting_ttft_ms'] = Math.ceil(usToMs((predicted.ttftUs * ttft.biasRatio) / (1 - ttft.marginRatio)))
  }
  const finishUs = (predicted.finishUs * finish.biasRatio) / (1 - finish.marginRatio)
  fitting['fitting_deadline_ms'] = Math.ceil(usToMs(finishUs))
  // A shorter answer helps only when it is the finish that is late.
  const affordableUs = (patience.finishUs * (1 - finish.marginRatio)) / finish.biasRatio
  if (late.lateness.promise === 'deadline' && affordableUs > predicted.ttftUs) {
    const perTokenUs = pool.speed.tokenUs(plan.estimate.promptTokens)
    fitting['fitting_output_tokens'] = request.choiceCount + Math.floor((affordableUs - predicted.ttftUs) / perTokenUs)
  }
  return fitting
}

const allowed = (us: number): string => (Number.isFinite(us) ? `${wholeMs(us)} ms` : 'no limit')

const inMs = (us: number): string => (Number.isFinite(us) ? `${wholeMs(us)} ms` : 'an unknown time')

function finiteMs(us: number): number | string {
  return Number.isFinite(us) ? wholeMs(us) : 'never'
}
