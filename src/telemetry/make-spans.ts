import type { Instant } from '../base/clock.ts'
import { usToSeconds } from '../base/clock.ts'
import { attemptPart, spanIdOf, traceIdOf } from '../base/trace-context.ts'
import type { AdmittedEntry, Arrived, AttemptEnded, Entry, Granted, RetrievalEnded, Settled } from '../domain/entry.ts'
import type { Screened } from '../domain/screening-entry.ts'
import { ATTRIBUTE, SPAN } from './span-names.ts'

/**
 * A ticket's story as spans, when it has ended: what `spillway explain` tells, in the words of OpenTelemetry. Made from
 * the same entries, so that the two never disagree.
 *
 *     request ──┬── screen     asked → verdict
 *               ├── retrieve   asked → joined
 *               ├── wait       admitted → granted
 *               └── attempt 1… granted → ended ──┬── prefill   granted → first token
 *                                                └── decode    first → last token
 */
export interface TicketSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: 'server' | 'client' | 'internal'
  readonly startAt: Instant
  readonly endAt: Instant
  readonly attributes: Readonly<Record<string, SpanValue>>
  /** Why it went wrong; undefined when it did not. */
  readonly error: string | undefined
}

export type SpanValue = string | number | boolean | undefined

export function makeSpans(story: readonly Entry[]): TicketSpan[] {
  const settled = story.find((entry) => entry.kind === 'settled')
  const arrived = story.find((entry) => entry.kind === 'arrived')
  if (settled === undefined || arrived === undefined) return []
  const traceId = arrived.trace?.traceId ?? traceIdOf(settled.ticketId)
  const root = spanIdOf(settled.ticketId, 'request')
  const inside = (part: string, name: string, startAt: Instant, endAt: Instant): TicketSpan => ({
    traceId,
    spanId: spanIdOf(settled.ticketId, part),
    parentId: root,
    name,
    kind: 'internal',
    startAt,
    endAt: Math.max(startAt, endAt),
    attributes: {},
    error: undefined,
  })
  const spans: TicketSpan[] = [requestSpan(arrived, settled, traceId, root)]
  let admitted: AdmittedEntry | undefined
  for (const entry of story) {
    if (entry.kind === 'screened') spans.push(screenSpan(entry, inside))
    else if (entry.kind === 'retrieval-ended') spans.push(retrieveSpan(entry, inside))
    else if (entry.kind === 'admitted') admitted = entry
    else if (entry.kind === 'granted') {
      const ended = story.find((other) => other.kind === 'attempt-ended' && other.attempt === entry.attempt)
      if (entry.attempt === 1 && admitted !== undefined) spans.push(waitSpan(admitted, entry.at, inside))
      spans.push(...attemptSpans(entry, ended as AttemptEnded | undefined, settled, inside))
    }
  }
  if (admitted !== undefined && settled.grantedAt === undefined) spans.push(waitSpan(admitted, settled.at, inside))
  return spans
}

type Inside = (part: string, name: string, startAt: Instant, endAt: Instant) => TicketSpan

function requestSpan(arrived: Arrived, settled: Settled, traceId: string, spanId: string): TicketSpan {
  const { usage, firstTokenAt, refusal, outcome } = settled
  const isWrong = outcome !== 'completed' && outcome !== 'cancelled'
  return {
    traceId,
    spanId,
    parentId: arrived.trace?.parentId,
    name: `${OPERATION} ${settled.model}`,
    kind: 'server',
    startAt: settled.arrivedAt,
    endAt: settled.at,
    attributes: {
      [ATTRIBUTE.operation]: OPERATION,
      [ATTRIBUTE.provider]: 'spillway',
      [ATTRIBUTE.requestModel]: settled.model,
      [ATTRIBUTE.responseModel]: settled.servedModel,
      [ATTRIBUTE.inputTokens]: usage.promptTokens,
      [ATTRIBUTE.outputTokens]: usage.outputTokens,
      [ATTRIBUTE.cachedTokens]: usage.cachedTokens,
      [ATTRIBUTE.firstChunk]: firstTokenAt === undefined ? undefined : usToSeconds(firstTokenAt - settled.arrivedAt),
      [ATTRIBUTE.requestId]: settled.ticketId,
      [ATTRIBUTE.tenant]: settled.tenantId,
      [ATTRIBUTE.key]: settled.keyId,
      [ATTRIBUTE.band]: settled.band,
      [ATTRIBUTE.rung]: settled.rung,
      [ATTRIBUTE.outcome]: outcome,
      [ATTRIBUTE.because]: settled.because,
      [ATTRIBUTE.isKept]: settled.isKept,
      [ATTRIBUTE.pool]: settled.poolId,
      [ATTRIBUTE.error]: isWrong ? (refusal?.code ?? outcome) : undefined,
    },
    error: isWrong ? settled.because : undefined,
  }
}

/** The entry does not say whether it was a chat or a completion; both are text from a model. */
const OPERATION = 'chat'

function screenSpan(entry: Screened, inside: Inside): TicketSpan {
  const span = inside('screen', SPAN.screen, entry.at - entry.tookUs, entry.at)
  return {
    ...span,
    attributes: {
      [ATTRIBUTE.verdict]: entry.verdict,
      [ATTRIBUTE.findings]: entry.findings.map(({ screen, category }) => `${screen}:${category}`).join(' '),
      [ATTRIBUTE.skipped]: entry.skipped.join(' '),
    },
    error: entry.verdict === 'blocked' ? entry.because : undefined,
  }
}

function retrieveSpan(entry: RetrievalEnded, inside: Inside): TicketSpan {
  const span = inside('retrieve', SPAN.retrieve, entry.at - entry.tookUs, entry.at)
  const attributes = {
    [ATTRIBUTE.retrieval]: entry.outcome,
    [ATTRIBUTE.passages]: entry.passageCount,
    [ATTRIBUTE.because]: entry.because,
  }
  return { ...span, attributes }
}

function waitSpan(admitted: AdmittedEntry, until: Instant, inside: Inside): TicketSpan {
  return {
    ...inside('wait', SPAN.wait, admitted.at, until),
    attributes: {
      [ATTRIBUTE.pool]: admitted.poolId,
      [ATTRIBUTE.rung]: admitted.rung,
      [ATTRIBUTE.because]: admitted.because,
      [ATTRIBUTE.predictedWaitS]: usToSeconds(admitted.predictedWaitUs),
      [ATTRIBUTE.predictedFirstTokenS]: usToSeconds(admitted.predictedTtftUs),
    },
  }
}

function attemptSpans(
  granted: Granted,
  ended: AttemptEnded | undefined,
  settled: Settled,
  inside: Inside,
): TicketSpan[] {
  const endAt = ended?.at ?? settled.at
  const isWrong = ended?.ending === 'lost' || ended?.ending === 'refused'
  const span: TicketSpan = {
    ...inside(attemptPart(granted.attempt), SPAN.attempt, granted.at, endAt),
    kind: 'client',
    attributes: {
      [ATTRIBUTE.attempt]: granted.attempt,
      [ATTRIBUTE.replica]: granted.replicaId,
      [ATTRIBUTE.release]: granted.releaseId,
      [ATTRIBUTE.because]: granted.because,
      [ATTRIBUTE.ending]: ended?.ending,
      [ATTRIBUTE.error]: isWrong ? ended.ending : undefined,
    },
    error: isWrong ? ended.because : undefined,
  }
  const { firstTokenAt, lastTokenAt, gaps } = settled
  // Tokens are those of the attempt that answered, which is the last.
  if (firstTokenAt === undefined || granted.attempt !== settled.attempts) return [span]
  const within = (part: string, name: string, startAt: Instant, until: Instant): TicketSpan => ({
    ...inside(part, name, startAt, until),
    parentId: span.spanId,
  })
  const prefill: TicketSpan = {
    ...within('prefill', SPAN.prefill, granted.at, firstTokenAt),
    attributes: { [ATTRIBUTE.cachedTokens]: settled.usage.cachedTokens },
  }
  let count = 0
  for (const each of gaps?.counts ?? []) count += each
  const meanS = count === 0 || gaps === undefined ? undefined : usToSeconds(gaps.sumUs / count)
  const decode: TicketSpan = {
    ...within('decode', SPAN.decode, firstTokenAt, lastTokenAt ?? firstTokenAt),
    attributes: { [ATTRIBUTE.outputTokens]: settled.usage.outputTokens, [ATTRIBUTE.interTokenMeanS]: meanS },
  }
  return [span, prefill, decode]
}
