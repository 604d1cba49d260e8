import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import type { RequestKind } from '../domain/request.ts'
import type { AnswerIdentity, StreamWriter, WholeWriter } from './dialect.ts'
import { SSE_DONE, SSE_KEEP_ALIVE, sseFrame } from './sse.ts'

/**
 * Our answers in OpenAI's shapes: one id, one `created` and one model for all chunks of a stream; the first delta of
 * each choice has the role; usage comes in one last chunk without choices, if it was asked for.
 *
 * What never changes within a stream is put into JSON once; a chunk is then two concatenations and one
 * `JSON.stringify` of the new text.
 */
const FINGERPRINT = 'fp_spillway'

export class StreamEncoder implements StreamWriter {
  readonly keepAlive = SSE_KEEP_ALIVE
  readonly #kind: RequestKind
  readonly #includesUsage: boolean
  readonly #head: string
  #tail: string
  #rung = 'full'
  /** By index: whether the choice's first delta, which has the role, has been sent. */
  readonly #startedChoices: boolean[] = []

  constructor(identity: AnswerIdentity) {
    this.#kind = identity.kind
    this.#includesUsage = identity.includesUsage
    const object = identity.kind === 'chat' ? 'chat.completion.chunk' : 'text_completion'
    this.#head = `data: {"id":${JSON.stringify(identity.id)},"object":"${object}","created":${identity.createdAtS},"model":${JSON.stringify(identity.model)},"system_fingerprint":"${FINGERPRINT}","choices":[`
    this.#tail = identity.includesUsage ? '],"usage":null}\n\n' : ']}\n\n'
  }

  /** A degraded answer says so in every chunk, because the headers of a stream may be sent before its rung is known. */
  noteRung(rung: string): void {
    if (rung === 'full' || this.#rung !== 'full') return
    this.#rung = rung
    this.#tail = this.#tail.replace(/^\]/, `],"spillway":{"rung":${JSON.stringify(rung)}}`)
  }

  /** One frame per choice, as engines send them; with the usage so far, where a client has asked an engine for it. */
  chunk(choices: readonly ChoiceDelta[], running?: Usage): string {
    const tail = running === undefined ? this.#tail : `],"usage":${JSON.stringify(wireUsage(running))}}\n\n`
    let frames = ''
    for (const choice of choices) {
      frames += this.#head + (this.#kind === 'chat' ? this.#chatChoice(choice) : completionChoice(choice)) + tail
    }
    return frames
  }

  /** A frame without choices that carries a field of ours; clients that do not know the field skip it. */
  aside(more: Readonly<Record<string, unknown>>): string {
    return `${this.#head}],${JSON.stringify(more).slice(1)}\n\n`
  }

  end(usage: Usage): string {
    if (!this.#includesUsage) return SSE_DONE
    return `${this.#head}],"usage":${JSON.stringify(wireUsage(usage))}}\n\n${SSE_DONE}`
  }

  fail(error: string): string {
    return sseFrame(error) + SSE_DONE
  }

  #chatChoice(choice: ChoiceDelta): string {
    const { index, content, extra, finishReason, logprobs } = choice
    const isFirst = this.#startedChoices[index] !== true
    if (isFirst) this.#startedChoices[index] = true
    let delta = isFirst ? '"role":"assistant"' : ''
    if (content !== '' && content !== null) delta += `${delta === '' ? '' : ','}"content":${JSON.stringify(content)}`
    else if (isFirst && extra === undefined) delta += ',"content":""'
    if (extra !== undefined)
      for (const key in extra) delta += `${delta === '' ? '' : ','}${JSON.stringify(key)}:${JSON.stringify(extra[key])}`
    return `{"index":${index},"delta":{${delta}},"logprobs":${logprobs === undefined ? 'null' : JSON.stringify(logprobs)},"finish_reason":${finishReason === null ? 'null' : JSON.stringify(finishReason)}}`
  }
}

function completionChoice(choice: ChoiceDelta): string {
  const logprobs = choice.logprobs === undefined ? 'null' : JSON.stringify(choice.logprobs)
  return `{"text":${JSON.stringify(choice.content ?? '')},"index":${choice.index},"logprobs":${logprobs},"finish_reason":${JSON.stringify(choice.finishReason)}}`
}

interface WholeChoice {
  content: string | null
  finishReason: string | null
  extra: Record<string, unknown> | undefined
  logprobs: unknown
}

/** Collects an answer that is sent as one JSON document, built by hand like the chunks of a stream. */
export class WholeAnswer implements WholeWriter {
  readonly #identity: AnswerIdentity
  readonly #choices: Array<WholeChoice | undefined> = []

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
  }

  add(choices: readonly ChoiceDelta[]): void {
    for (const { index, content, finishReason, extra, logprobs } of choices) {
      let whole = this.#choices[index]
      if (whole === undefined) {
        whole = { content: null, finishReason: null, extra: undefined, logprobs: null }
        this.#choices[index] = whole
      }
      if (content !== null) whole.content = whole.content === null ? content : whole.content + content
      if (finishReason !== null) whole.finishReason = finishReason
      if (extra !== undefined) whole.extra = { ...whole.extra, ...extra }
      if (logprobs !== undefined) whole.logprobs = logprobs
    }
  }

  encode(usage: Usage, ours?: Readonly<Record<string, unknown>>): string {
    const identity = this.#identity
    const isChat = identity.kind === 'chat'
    let choices = ''
    for (let index = 0; index < this.#choices.length; index++) {
      const choice = this.#choices[index]
      // An engine may have left a choice out: it is left out here too, not null.
      if (choice === undefined) continue
      if (choices !== '') choices += ','
      choices += isChat ? `{"index":${index},"message":${messageOf(choice)}` : textOf(choice, index)
      const logprobs = choice.logprobs === null ? 'null' : JSON.stringify(choice.logprobs)
      choices += `,"logprobs":${logprobs},"finish_reason":${JSON.stringify(choice.finishReason ?? 'stop')}}`
    }
    const object = isChat ? 'chat.completion' : 'text_completion'
    return (
      `{"id":${JSON.stringify(identity.id)},"object":"${object}","created":${identity.createdAtS},` +
      `"model":${JSON.stringify(identity.model)},"system_fingerprint":"${FINGERPRINT}","choices":[${choices}],` +
      `"usage":${JSON.stringify(wireUsage(usage))}${ours === undefined ? '' : `,"spillway":${JSON.stringify(ours)}`}}`
    )
  }
}

function messageOf({ content, extra }: WholeChoice): string {
  if (extra !== undefined) return JSON.stringify({ role: 'assistant', content, refusal: null, ...extra })
  return `{"role":"assistant","content":${JSON.stringify(content)},"refusal":null}`
}

const textOf = ({ content }: WholeChoice, index: number): string =>
  `{"text":${JSON.stringify(content ?? '')},"index":${index}`

export function wireUsage(usage: Usage): Record<string, unknown> {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.promptTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  }
}
