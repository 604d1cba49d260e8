import type { ChoiceDelta } from '../domain/delta.ts'
import {
  CallItem,
  MessageItem,
  type OutputItem,
  type PartKind,
  ReasoningItem,
  type TextEvents,
} from './responses-items.ts'

/**
 * The deltas of a chat as the output items of a response, and the events that tell of them.
 *
 *   reasoning   an item of its own, in front of what it led to
 *   text        parts of a message; another message where something else came in between
 *   calls       an item each. Engines may write several at once, so calls end with the answer
 *
 * One machine for both forms: a whole answer is what the events of a stream add up to, because it comes from the same
 * items. Without `emits` the events are left out.
 */
export interface OutputOptions {
  /** What stands in every id of this response, after its prefix. */
  readonly core: string
  readonly emits: boolean
  readonly isSummary: boolean
  /** Reasoning is written a second time, for clients that bring it back. */
  readonly isSealed: boolean
  readonly hasLogprobs: boolean
}

type Json = Readonly<Record<string, unknown>>

export class ResponseOutput {
  readonly #options: OutputOptions
  readonly #items: OutputItem[] = []
  /** By the engine's index; calls without one follow the one before. */
  readonly #calls = new Map<number, CallItem>()
  readonly #callIds = new Set<string>()
  /** The message or reasoning that is being written. */
  #open: MessageItem | ReasoningItem | undefined
  #lastCall: CallItem | undefined
  #touched: OutputItem | undefined
  #sequence = 0
  finishReason: string | null = null

  constructor(options: OutputOptions) {
    this.#options = options
  }

  /** Takes the number of the next event. */
  next(): number {
    return this.#sequence++
  }

  /** The items in JSON, with commas between them. */
  get json(): string {
    let all = ''
    for (const item of this.#items) all += all === '' ? item.json : `,${item.json}`
    return all
  }

  /** The events of these deltas. A response has one choice. */
  take(choices: readonly ChoiceDelta[]): string {
    let events = ''
    for (const choice of choices) {
      if (choice.index !== 0) continue
      const { content, extra, logprobs } = choice
      if (extra !== undefined) events += this.#reasoning(extra)
      if (content !== null && content !== '') events += this.#say('output_text', content, logprobs)
      if (extra !== undefined) events += this.#more(extra)
      if (choice.finishReason !== null) this.finishReason = choice.finishReason
    }
    return events
  }

  /** Ends every item. An answer without a word is an empty message. */
  end(isCut: boolean): string {
    let events = ''
    if (this.#items.length === 0) events += this.#beginMessage() + this.#beginPart('output_text')
    const cut = isCut ? this.#touched : undefined
    for (const item of this.#items) {
      if (item.status === 'in_progress') events += this.#close(item, item === cut ? 'incomplete' : 'completed')
    }
    return events
  }

  /** The answer broke off: what was being written stays as it is. */
  breakOff(): void {
    for (const item of this.#items) if (item.status === 'in_progress') item.status = 'incomplete'
  }

  #reasoning(extra: Json): string {
    const text = extra['reasoning_content'] ?? extra['reasoning']
    if (typeof text !== 'string' || text === '') return ''
    let events = ''
    let item = this.#open
    if (item?.kind !== 'reasoning') {
      events += this.#closeOpen()
      item = new ReasoningItem(this.#place('rs'), this.#options)
      this.#open = item
      events += this.#add(item)
      item.hasPart = true
      events += this.#partEvent(item, 'added')
    }
    item.text += text
    this.#touched = item
    return events + this.#delta(item.events, text)
  }

  #say(kind: PartKind, text: string, logprobs?: unknown): string {
    let events = ''
    if (this.#open?.kind !== 'message') events += this.#closeOpen() + this.#beginMessage()
    const item = this.#open as unknown as MessageItem
    let part = item.part
    if (part?.kind !== kind) {
      events += this.#closePart(item) + this.#beginPart(kind)
      part = item.part
    }
    if (part === undefined) return events
    part.text += text
    this.#touched = item
    if (logprobs === undefined || !this.#options.hasLogprobs) return events + this.#delta(part.events, text)
    const listed = logprobsOf(logprobs)
    for (const one of listed) part.logprobs.push(one)
    return events + this.#delta(part.events, text, JSON.stringify(listed))
  }

  /** What a chat says beside its content: a refusal, calls, and the older single call. */
  #more(extra: Json): string {
    const { refusal, tool_calls: calls, function_call: call } = extra
    let events = typeof refusal === 'string' && refusal !== '' ? this.#say('refusal', refusal) : ''
    if (Array.isArray(calls)) for (const one of calls) if (isObject(one)) events += this.#call(one)
    if (isObject(call)) events += this.#call({ index: 0, function: call })
    return events
  }

  #call(call: Json): string {
    const custom = isObject(call['custom']) ? call['custom'] : undefined
    const said = custom ?? (isObject(call['function']) ? call['function'] : {})
    let events = ''
    let item = this.#callOf(call, said)
    if (item === undefined) {
      events += this.#closeOpen()
      item = new CallItem(this.#place(custom === undefined ? 'fc' : 'ctc'), {
        kind: custom === undefined ? 'function_call' : 'custom_tool_call',
        callId: this.#callId(call['id']),
        engineId: textOf(call['id']),
        name: textOf(said['name']),
      })
      if (typeof call['index'] === 'number') this.#calls.set(call['index'], item)
      events += this.#add(item)
    } else if (item.name === '') item.name = textOf(said['name'])
    this.#lastCall = item
    this.#touched = item
    const text = writtenOf(custom === undefined ? said['arguments'] : said['input'])
    if (text === '') return events
    item.text += text
    return events + this.#delta(item.events, text)
  }

  /**
   * The call that a delta goes on with. Servers that give no index send calls whole, or one after the other; some give
   * every call the same index, and begin each with an id and a name.
   */
  #callOf({ index, id }: Json, { name }: Json): CallItem | undefined {
    const item = typeof index === 'number' ? this.#calls.get(index) : this.#lastCall
    const isAnother = textOf(id) !== '' && id !== item?.engineId && (typeof index !== 'number' || textOf(name) !== '')
    return isAnother ? undefined : item
  }

  /** The engine's own id, once: outputs are matched by it. */
  #callId(id: unknown): string {
    const given = typeof id === 'string' && id !== '' && !this.#callIds.has(id) ? id : undefined
    const callId = given ?? `call_${this.#options.core}_${this.#items.length}`
    this.#callIds.add(callId)
    return callId
  }

  #place(prefix: string): { id: string; outputIndex: number } {
    const outputIndex = this.#items.length
    return { id: `${prefix}_${this.#options.core}_${outputIndex}`, outputIndex }
  }

  #add(item: OutputItem): string {
    const event = this.#event(
      'response.output_item.added',
      () => `"output_index":${item.outputIndex},"item":${item.json}`,
    )
    this.#items.push(item)
    return event
  }

  #beginMessage(): string {
    const item = new MessageItem(this.#place('msg'))
    this.#open = item
    return this.#add(item)
  }

  #beginPart(kind: PartKind): string {
    const item = this.#open as MessageItem
    const part = item.addPart(kind)
    return this.#event('response.content_part.added', () => `${part.place},"part":${part.json}`)
  }

  #closePart({ part }: MessageItem): string {
    if (part === undefined) return ''
    const done = this.#done(part.events, part.text)
    return done + this.#event('response.content_part.done', () => `${part.place},"part":${part.json}`)
  }

  #closeOpen(): string {
    const item = this.#open
    if (item === undefined) return ''
    this.#open = undefined
    return this.#close(item, 'completed')
  }

  #close(item: OutputItem, status: 'completed' | 'incomplete'): string {
    item.status = status
    let events = ''
    if (item.kind === 'message') events = this.#closePart(item)
    else {
      events = this.#done(item.events, item.text)
      if (item.kind === 'reasoning') events += this.#partEvent(item, 'done')
    }
    return (
      events + this.#event('response.output_item.done', () => `"output_index":${item.outputIndex},"item":${item.json}`)
    )
  }

  #partEvent(item: ReasoningItem, what: 'added' | 'done'): string {
    const type = item.isSummary ? 'response.reasoning_summary_part' : 'response.content_part'
    return this.#event(`${type}.${what}`, () => `${item.place},"part":${item.part}`)
  }

  #event(type: string, fields: () => string): string {
    if (!this.#options.emits) return ''
    return `event: ${type}\ndata: {"type":"${type}",${fields()},"sequence_number":${this.#sequence++}}\n\n`
  }

  #delta({ deltaHead, deltaTail }: TextEvents, text: string, logprobs = '[]'): string {
    if (!this.#options.emits) return ''
    const tail = deltaTail === '' ? '' : deltaTail + logprobs
    return `${deltaHead}${JSON.stringify(text)}${tail},"sequence_number":${this.#sequence++}}\n\n`
  }

  #done({ doneHead, doneTail }: TextEvents, text: string): string {
    if (!this.#options.emits) return ''
    return `${doneHead}${JSON.stringify(text)}${doneTail()},"sequence_number":${this.#sequence++}}\n\n`
  }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
/** Some servers send arguments as an object. */
const writtenOf = (value: unknown): string => (isObject(value) ? JSON.stringify(value) : textOf(value))

/** A chat's log probabilities: the list of tokens. Responses wants bytes in each. */
function logprobsOf(logprobs: unknown): readonly object[] {
  return tokensOf(isObject(logprobs) ? logprobs['content'] : undefined).map((one) => ({
    ...withBytes(one),
    top_logprobs: tokensOf(one['top_logprobs']).map(withBytes),
  }))
}

const withBytes = (one: Json): object => ({ ...one, bytes: Array.isArray(one['bytes']) ? one['bytes'] : [] })

/** What an engine lists that is no token with its probability is left out. */
function tokensOf(list: unknown): Json[] {
  const isToken = (one: unknown): one is Json =>
    isObject(one) && typeof one['token'] === 'string' && typeof one['logprob'] === 'number'
  return Array.isArray(list) ? list.filter(isToken) : []
}
