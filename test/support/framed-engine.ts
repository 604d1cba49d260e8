import { runAttempt } from '../../src/backends/http-attempt.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Replica } from '../../src/domain/fleet.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../../src/lifecycle/ports.ts'
import { TokenLength } from '../../src/wire/token-length.ts'
import { readUpstream } from '../../src/wire/upstream.ts'

/**
 * An OpenAI-compatible engine in virtual time, read as a live one is: its bytes go through the reader of streams, but for
 * the socket. It makes a token every `tokenUs` and sends them in frames, as vLLM's `--stream-interval` does.
 */
export interface FramedAnswer {
  /** Text of each token. */
  readonly tokens: readonly string[]
  /** Tokens of a frame. */
  readonly frameTokens: number
  /** Whether the first frame is as long as the others, as a proxy's is; an engine sends its first token alone. */
  readonly isFirstFull?: boolean
  readonly prefillUs?: number
  readonly tokenUs?: number
  /** Frames that would go out in this time after the first token are held until its end. */
  readonly stall?: { readonly fromUs: number; readonly toUs: number }
  /** Where the text goes. */
  readonly field?: 'content' | 'reasoning_content' | 'tool_calls'
  /** What it says of its count: nothing, the whole at the end, in every frame, or the whole and something else. */
  readonly usage?: 'none' | 'final' | 'running' | { readonly tokens: number; readonly reasoningTokens?: number }
}

const FRAME_HEAD = { id: 'up-1', object: 'chat.completion.chunk' }

export class FramedEngine implements Backend {
  readonly tokenLength = new TokenLength()
  readonly #clock: Clock
  readonly #answers: FramedAnswer[]

  /** One answer after the other; the last repeats. */
  constructor(clock: Clock, ...answers: FramedAnswer[]) {
    this.#clock = clock
    this.#answers = answers
  }

  generate(call: Call): Promise<Ending> {
    const answer = (this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0]) as FramedAnswer
    const format = { read: readUpstream, redact: (text: string) => text, tokenLength: this.tokenLength }
    const controller = { aborted: false, abort() {}, pause() {}, resume() {} }
    return runAttempt({
      call,
      format,
      clock: this.#clock,
      dispatch: (reader) => {
        reader.onRequestStart?.(controller as never, {})
        reader.onResponseStart?.(controller as never, 200, { 'content-type': 'text/event-stream' }, 'OK')
        for (const { at, data } of framesOf(answer)) {
          const bytes = Buffer.from(`data: ${data}\n\n`)
          this.#clock.at(this.#clock.now() + at, () => reader.onResponseData?.(controller as never, bytes))
        }
      },
    })
  }

  probe(_replica: Replica): Promise<ReplicaReport> {
    return Promise.resolve({ isReady: true, because: 'it runs in the test' })
  }
}

interface TimedFrame {
  readonly at: number
  readonly data: string
}

function framesOf(answer: FramedAnswer): TimedFrame[] {
  const { tokens, frameTokens, isFirstFull = false, prefillUs = 50_000, tokenUs = 10_000, usage = 'final' } = answer
  const frames: TimedFrame[] = []
  for (let from = 0; from < tokens.length; ) {
    const to = Math.min(tokens.length, from === 0 && !isFirstFull ? 1 : from + frameTokens)
    const delta = deltaOf(answer, tokens.slice(from, to).join(''), from === 0)
    const running = usage === 'running' ? { usage: usageOf(to) } : {}
    const frame = { ...FRAME_HEAD, choices: [{ index: 0, delta, finish_reason: null }], ...running }
    frames.push({ at: heldUntil(answer, prefillUs, (to - 1) * tokenUs), data: JSON.stringify(frame) })
    from = to
  }
  // Its end is a token without text, which it counts as vLLM does.
  const endAt = prefillUs + tokens.length * tokenUs
  const ends = [{ index: 0, delta: {}, finish_reason: 'stop' }]
  frames.push({ at: endAt, data: JSON.stringify({ ...FRAME_HEAD, choices: ends }) })
  const reported = typeof usage === 'object' ? usageOf(usage.tokens, usage.reasoningTokens) : usageOf(tokens.length + 1)
  const last = JSON.stringify({ ...FRAME_HEAD, choices: [], usage: reported })
  if (usage !== 'none') frames.push({ at: endAt, data: last })
  return [...frames, { at: endAt, data: '[DONE]' }]
}

const heldUntil = ({ stall }: FramedAnswer, prefillUs: number, us: number): number =>
  prefillUs + (stall !== undefined && us > stall.fromUs && us < stall.toUs ? stall.toUs : us)

function deltaOf({ field = 'content' }: FramedAnswer, text: string, isFirst: boolean): object {
  if (field !== 'tool_calls') return { [field]: text }
  const head = isFirst ? { id: 'call_0123456789abcdef', type: 'function' } : {}
  const call = { index: 0, ...head, function: isFirst ? { name: 'look', arguments: text } : { arguments: text } }
  return { tool_calls: [call] }
}

const usageOf = (completion_tokens: number, reasoning_tokens?: number): object => ({
  prompt_tokens: 20,
  completion_tokens,
  total_tokens: 20 + completion_tokens,
  ...(reasoning_tokens !== undefined && { completion_tokens_details: { reasoning_tokens } }),
})

const SENTENCE =
  'A| spill|way| lets| the| water| of| a| flood| pass| a| dam| without| harm|:| it| is| sized| for| the| largest| flood| that| anyone| expects|,| and| stays| dry| in| most| years|.|'

/** So many tokens of English, of 1 to 8 bytes each. */
export function englishTokens(count: number): string[] {
  const pieces = SENTENCE.split('|').filter((piece) => piece !== '')
  return Array.from({ length: count }, (_, i) => pieces[i % pieces.length] as string)
}
