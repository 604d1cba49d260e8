import type { ChoiceDelta, EngineText, Usage } from '../domain/delta.ts'
import type { RequestKind } from '../domain/request.ts'
import type { AnswerIdentity, Beside, StreamWriter, WholeWriter } from './dialect.ts'
import { FrameRelay } from './frame-relay.ts'
import { joinLogprobs } from './logprobs.ts'
import { elementsOf, memberText, spliceJson } from './splice-json.ts'
import { SSE_DONE, SSE_KEEP_ALIVE, sseFrame } from './sse.ts'
import { usageText } from './usage-text.ts'

/**
 * Our answers in OpenAI's shapes: one id, one `created` and one model for all chunks of a stream; the first delta of
 * each choice has the role; usage comes in one last chunk without choices, if it was asked for.
 *
 * An engine that speaks OpenAI's words is passed on in its own text (`frame-relay.ts`). Where that is not possible (the
 * simulated engine, another kind of engine, an answer that was cut here), the answer is built: what never changes within
 * a stream is put into JSON once; a chunk is then two concatenations and one `JSON.stringify` of the new text.
 */
const FINGERPRINT = 'fp_spillway'

export class StreamEncoder implements StreamWriter {
  readonly keepAlive = SSE_KEEP_ALIVE
  readonly #kind: RequestKind
  readonly #includesUsage: boolean
  readonly #head: string
  readonly #relay: FrameRelay
  #tail: string
  #rung = 'full'
  /** The JSON of our own member in every frame of a degraded answer. */
  #ours: string | undefined
  /** By index: whether the choice's first delta, which has the role, has been sent. */
  readonly #startedChoices: boolean[] = []

  constructor(identity: AnswerIdentity) {
    this.#kind = identity.kind
    this.#includesUsage = identity.includesUsage
    const object = identity.kind === 'chat' ? 'chat.completion.chunk' : 'text_completion'
    this.#relay = new FrameRelay(identity, object)
    this.#head = `data: {"id":${JSON.stringify(identity.id)},"object":"${object}","created":${identity.createdAtS},"model":${JSON.stringify(identity.model)},"system_fingerprint":"${FINGERPRINT}","choices":[`
    this.#tail = identity.includesUsage ? '],"usage":null}\n\n' : ']}\n\n'
  }

  /** A degraded answer says so in every chunk, because the headers of a stream may be sent before its rung is known. */
  noteRung(rung: string): void {
    if (rung === 'full' || this.#rung !== 'full') return
    this.#rung = rung
    this.#ours = `{"rung":${JSON.stringify(rung)}}`
    this.#tail = this.#tail.replace(/^\]/, `],"spillway":${this.#ours}`)
  }

  relay(frame: EngineText, choices: readonly ChoiceDelta[]): string {
    let text = frame
    if (this.#kind === 'chat') {
      for (const { index } of choices) if (this.#isFirstOf(index)) text = { ...text, json: withRole(text.json, index) }
    }
    if (text.json.includes('\n')) text = { ...text, json: oneLine(text.json) }
    return sseFrame(this.#relay.frame(text, this.#ours))
  }

  /** One frame per choice, as engines send them; with the usage so far, where a client has asked an engine for it. */
  chunk(choices: readonly ChoiceDelta[], running?: Usage, beside?: Beside): string {
    const tail = running === undefined ? this.#tail : `],"usage":${usageText(running)}}\n\n`
    let frames = ''
    for (const choice of choices) {
      const frame = this.#head + (this.#kind === 'chat' ? this.#chatChoice(choice) : completionChoice(choice)) + tail
      frames += beside === undefined ? frame : withBeside(frame, beside)
    }
    return frames
  }

  /** A frame without choices that carries a field of ours; clients that do not know the field skip it. */
  aside(more: Readonly<Record<string, unknown>>): string {
    return `${this.#head}],${JSON.stringify(more).slice(1)}\n\n`
  }

  end(usage: Usage): string {
    const { told } = usage
    if (told?.isAlone === true) {
      const closing = this.#relay.closing(told.source, usage, this.#ours)
      return closing === undefined ? SSE_DONE : sseFrame(oneLine(closing)) + SSE_DONE
    }
    if (!this.#includesUsage) return SSE_DONE
    const json = `${this.#head.slice(DATA.length)}],"usage":${usageText(usage)}}`
    return sseFrame(this.#relay.signed(json)) + SSE_DONE
  }

  fail(error: string): string {
    return sseFrame(error) + SSE_DONE
  }

  /** Whether this is the first frame of the choice; told once. */
  #isFirstOf(index: number): boolean {
    const isFirst = this.#startedChoices[index] !== true
    if (isFirst) this.#startedChoices[index] = true
    return isFirst
  }

  #chatChoice(choice: ChoiceDelta): string {
    const { index, content, extra, finishReason, logprobs } = choice
    const isFirst = this.#isFirstOf(index)
    let delta = isFirst ? '"role":"assistant"' : ''
    if (content !== '' && content !== null) delta += `${delta === '' ? '' : ','}"content":${JSON.stringify(content)}`
    else if (isFirst && extra === undefined) delta += ',"content":""'
    if (extra !== undefined)
      for (const key in extra) delta += `${delta === '' ? '' : ','}${JSON.stringify(key)}:${JSON.stringify(extra[key])}`
    return `{"index":${index},"delta":{${delta}},"logprobs":${logprobs === undefined ? 'null' : JSON.stringify(logprobs)},"finish_reason":${finishReason === null ? 'null' : JSON.stringify(finishReason)}${besideOf(choice)}}`
  }
}

const DATA = 'data: '

/** A frame that was built, with what the engine said beside its choices. */
function withBeside(frame: string, beside: Beside): string {
  return sseFrame(spliceJson(frame.slice(DATA.length, -2), textsOf(beside)))
}

const textsOf = (beside: Beside): Record<string, string> =>
  Object.fromEntries(Object.entries(beside).map(([name, value]) => [name, JSON.stringify(value)]))

/** Further members of a choice, each with its comma. */
function besideOf({ beside }: Pick<ChoiceDelta, 'beside'>): string {
  let text = ''
  for (const name in beside) text += `,${JSON.stringify(name)}:${JSON.stringify(beside[name])}`
  return text
}

/** The frame with the role in this choice's delta, where the engine left it out: some clients need it in the first. */
function withRole(json: string, index: number): string {
  const elements = elementsOf(memberText(json, 'choices') ?? '') ?? []
  let isChanged = false
  const choices = elements.map((element) => {
    const choice = JSON.parse(element) as { index?: unknown; delta?: { role?: unknown } }
    if (choice.index !== index || choice.delta === undefined || 'role' in choice.delta) return element
    isChanged = true
    return spliceJson(element, { delta: spliceJson(memberText(element, 'delta') ?? '{}', { role: '"assistant"' }) })
  })
  return isChanged ? spliceJson(json, { choices: `[${choices.join(',')}]` }) : json
}

/** A line break in JSON is a space between two words of it, and would end the line of the frame. */
const oneLine = (json: string): string => (json.includes('\n') ? json.replaceAll('\n', ' ') : json)

function completionChoice(choice: ChoiceDelta): string {
  const logprobs = choice.logprobs === undefined ? 'null' : JSON.stringify(choice.logprobs)
  return `{"text":${JSON.stringify(choice.content ?? '')},"index":${choice.index},"logprobs":${logprobs},"finish_reason":${JSON.stringify(choice.finishReason)}${besideOf(choice)}}`
}

interface WholeChoice {
  content: string | null
  finishReason: string | null
  extra: Record<string, unknown> | undefined
  logprobs: unknown
  beside: Record<string, unknown> | undefined
}

/** Collects an answer that is sent as one JSON document, built by hand like the chunks of a stream. */
export class WholeAnswer implements WholeWriter {
  readonly #identity: AnswerIdentity
  readonly #choices: Array<WholeChoice | undefined> = []
  #document: EngineText | undefined
  #beside: Beside | undefined

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
  }

  relay(document: EngineText): void {
    this.#document = document
  }

  add(choices: readonly ChoiceDelta[], besideAll?: Beside): void {
    if (besideAll !== undefined) this.#beside = { ...this.#beside, ...besideAll }
    for (const { index, content, finishReason, extra, logprobs, beside } of choices) {
      let whole = this.#choices[index]
      if (whole === undefined) {
        whole = { content: null, finishReason: null, extra: undefined, logprobs: null, beside: undefined }
        this.#choices[index] = whole
      }
      if (content !== null) whole.content = whole.content === null ? content : whole.content + content
      if (finishReason !== null) whole.finishReason = finishReason
      if (extra !== undefined) whole.extra = { ...whole.extra, ...extra }
      if (logprobs !== undefined) whole.logprobs = joinLogprobs(whole.logprobs, logprobs)
      if (beside !== undefined) whole.beside = { ...whole.beside, ...beside }
    }
  }

  encode(usage: Usage, ours?: Readonly<Record<string, unknown>>): string {
    const identity = this.#identity
    const isChat = identity.kind === 'chat'
    const object = isChat ? 'chat.completion' : 'text_completion'
    if (this.#document !== undefined) {
      const added = ours === undefined ? undefined : JSON.stringify(ours)
      return new FrameRelay(identity, object).document(this.#document, usage, added)
    }
    let choices = ''
    for (let index = 0; index < this.#choices.length; index++) {
      const choice = this.#choices[index]
      // An engine may have left a choice out: it is left out here too, not null.
      if (choice === undefined) continue
      if (choices !== '') choices += ','
      choices += isChat ? `{"index":${index},"message":${messageOf(choice)}` : textOf(choice, index)
      const logprobs = choice.logprobs === null ? 'null' : JSON.stringify(choice.logprobs)
      choices += `,"logprobs":${logprobs},"finish_reason":${JSON.stringify(choice.finishReason ?? 'stop')}${besideOf(choice as Pick<ChoiceDelta, 'beside'>)}}`
    }
    const built =
      `{"id":${JSON.stringify(identity.id)},"object":"${object}","created":${identity.createdAtS},` +
      `"model":${JSON.stringify(identity.model)},"system_fingerprint":"${FINGERPRINT}","choices":[${choices}],` +
      `"usage":${usageText(usage)}${ours === undefined ? '' : `,"spillway":${JSON.stringify(ours)}`}}`
    return this.#beside === undefined ? built : spliceJson(built, textsOf(this.#beside))
  }
}

function messageOf({ content, extra }: WholeChoice): string {
  if (extra !== undefined) return JSON.stringify({ role: 'assistant', content, refusal: null, ...extra })
  return `{"role":"assistant","content":${JSON.stringify(content)},"refusal":null}`
}

const textOf = ({ content }: WholeChoice, index: number): string =>
  `{"text":${JSON.stringify(content ?? '')},"index":${index}`
