import type { AnswerFormat } from '../../src/backends/http-answer-reader.ts'
import { runAttempt } from '../../src/backends/http-attempt.ts'
import { Cancellation } from '../../src/base/cancellation.ts'
import { type Delta, NO_USAGE } from '../../src/domain/delta.ts'
import type { Plan } from '../../src/domain/plan.ts'
import type { RequestKind } from '../../src/domain/request.ts'
import type { Ending } from '../../src/lifecycle/ports.ts'
import { StreamEncoder, WholeAnswer } from '../../src/wire/answer.ts'
import type { AnswerIdentity } from '../../src/wire/dialect.ts'
import { TokenLength } from '../../src/wire/token-length.ts'
import { readUpstream } from '../../src/wire/upstream.ts'
import { makeRequest } from './requests.ts'

/**
 * An engine's bytes, cut into any pieces, through the reader of answers and the writer of the client's answer: what
 * reaches the client, without sockets in between.
 */
export interface Through {
  readonly pieces: readonly Buffer[]
  readonly isStreamed: boolean
  readonly kind?: RequestKind
  readonly keepsModel?: boolean
  readonly includesUsage?: boolean
  readonly includesRunningUsage?: boolean
  readonly choiceCount?: number
  readonly tokensMax?: number
  /** What the engine really sends, where that is not what the client asked for. */
  readonly sendsStream?: boolean
  readonly rung?: string
}

export interface CameThrough {
  readonly text: string
  readonly ending: Ending
  readonly deltas: readonly Delta[]
}

export const OUR_ID = 'chatcmpl-ours'
export const OUR_MODEL = 'their-alias'
export const CREATED_AT_S = 1_700_000_000

const controller = { aborted: false, abort() {}, pause() {}, resume() {} } as never
const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }

export async function relayThrough(through: Through): Promise<CameThrough> {
  const { isStreamed, kind = 'chat', keepsModel = false, choiceCount = 1, rung = 'full' } = through
  const identity: AnswerIdentity = {
    kind,
    id: OUR_ID,
    createdAtS: CREATED_AT_S,
    model: OUR_MODEL,
    includesUsage: through.includesUsage === true,
    includesRunningUsage: through.includesRunningUsage === true,
  }
  const stream = new StreamEncoder(identity)
  const whole = new WholeAnswer(identity)
  stream.noteRung(rung)
  const deltas: Delta[] = []
  const format: AnswerFormat = {
    read: readUpstream,
    redact: (text) => text,
    tokenLength: new TokenLength(),
    relays: { keepsModel },
  }
  const ending = await runAttempt({
    call: {
      lease: { id: 1, ticketId: 'req_1', replica },
      request: makeRequest({ isStreamed, kind, choiceCount, text: { body: {} } }),
      plan: { outputTokensMax: through.tokensMax ?? 100_000, estimate: { promptTokens: 20 } } as Plan,
      sink: { write: (delta) => void deltas.push(delta) },
      cancellation: new Cancellation(),
    },
    format,
    clock: undefined,
    dispatch: (reader) => {
      const type = (through.sendsStream ?? isStreamed) ? 'text/event-stream' : 'application/json'
      reader.onResponseStart?.(controller, 200, { 'content-type': type }, 'OK')
      for (const piece of through.pieces) reader.onResponseData?.(controller, piece)
      reader.onResponseEnd?.(controller, {})
    },
  })
  let text = ''
  for (const { frame, choices = [], beside, ahead = [] } of deltas) {
    for (const one of ahead) text += stream.relay(one.frame, one.choices)
    if (isStreamed)
      text += frame === undefined ? stream.chunk(choices, undefined, beside) : stream.relay(frame, choices)
    else if (frame === undefined) whole.add(choices, beside)
    else whole.relay(frame)
  }
  const usage = (ending.kind === 'finished' ? ending.usage : undefined) ?? NO_USAGE
  const ours = rung === 'full' ? undefined : { rung }
  return { text: isStreamed ? text + stream.end(usage) : whole.encode(usage, ours), ending, deltas }
}

/** Parses JSON with every number as the text that it was written as. */
export function exactJson(text: string): unknown {
  const reviver = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' ? `#${context?.source}` : value
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown) as unknown
}

/** The bytes cut at these places, in characters and frames alike. */
export function cutAt(text: string, places: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text)
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  const ends = [...cuts, bytes.length]
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end)).filter(({ length }) => length > 0)
}
