import type { ChoiceDelta } from '../domain/delta.ts'
import { JsonChannel } from './json-channel.ts'
import type { KeptHold } from './restoring-hold.ts'
import type { TextField, WrittenCall, WrittenChoices } from './written-choices.ts'

/**
 * The texts of one choice: content, reasoning, refusal and the arguments of each call. Each is a text of its own, of
 * which only what could still become a finding is held. Where a choice goes from one of its texts to another (from
 * reasoning to content, from content to a call), the first has ended: its rest goes out before the other begins, or a
 * client would see the last word of the reasoning behind the answer. Calls that are written side by side stay open.
 */
export interface ChoiceWriting {
  readonly client: WrittenChoices
  /** The same for stores; undefined where it is the same. */
  readonly kept: WrittenChoices | undefined
}

export interface ChoiceParts {
  readonly makeText: () => KeptHold
  /** A short text that comes whole: a name, an id. */
  readonly screenWhole: (text: string) => string
  /** A member of the message that no screen can read. */
  readonly onUnknown: (name: string, value: unknown) => unknown
}

type Json = Readonly<Record<string, unknown>>

type Group = 'reasoning' | 'content' | 'refusal' | 'calls'

interface Call {
  readonly index: number | undefined
  readonly id: string | undefined
  readonly part: 'function' | 'custom'
  readonly text: KeptHold
}

/** Calls of one choice; more than engines write. What belongs to a further one goes to the last. */
export const CALLS_MAX = 1_024
const REASONING: readonly TextField[] = ['reasoning_content', 'reasoning']
const KNOWN: ReadonlySet<string> = new Set([...REASONING, 'refusal', 'tool_calls', 'function_call'])

export class ChoiceScreen {
  readonly #index: number
  readonly #parts: ChoiceParts
  /** The content's, which most answers have alone. */
  #content: KeptHold | undefined
  #others: Map<TextField, KeptHold> | undefined
  #open: Group | undefined
  #calls: Call[] | undefined
  #functionCall: KeptHold | undefined

  constructor(index: number, parts: ChoiceParts) {
    this.#index = index
    this.#parts = parts
  }

  get heldLength(): number {
    let length = (this.#content?.heldLength ?? 0) + (this.#functionCall?.heldLength ?? 0)
    for (const text of this.#others?.values() ?? []) length += text.heldLength
    for (const { text } of this.#calls ?? []) length += text.heldLength
    return length
  }

  /** A piece of the content and nothing else. */
  plain(content: string, to: ChoiceWriting): void {
    this.#say('content', content, to)
  }

  take({ content, extra, finishReason, stopSequence }: ChoiceDelta, to: ChoiceWriting): void {
    if (extra !== undefined) for (const field of REASONING) this.#sayMember(field, extra, to)
    if (content !== null && content !== '') this.#say('content', content, to)
    if (extra !== undefined) {
      this.#sayMember('refusal', extra, to)
      this.#takeCalls(extra, to)
      for (const name in extra) if (!KNOWN.has(name)) this.#takeUnknown(name, extra[name], to)
    }
    if (finishReason === null) return
    this.flush(to)
    const stop = stopSequence === undefined ? {} : { stopSequence: this.#parts.screenWhole(stopSequence) }
    to.client.finish(this.#index, finishReason, { content, ...stop })
    to.kept?.finish(this.#index, finishReason, { content, ...stop })
  }

  flush(to: ChoiceWriting): void {
    this.#endTexts(to)
    const calls = this.#calls ?? []
    this.#calls = undefined
    for (const call of calls) this.#writeCall(call, call.text.flush(), {}, to)
    const legacy = this.#functionCall
    this.#functionCall = undefined
    if (legacy !== undefined) this.#writeFunctionCall(undefined, legacy.flush(), legacy.kept, to)
  }

  #sayMember(field: TextField, extra: Json, to: ChoiceWriting): void {
    const text = extra[field]
    if (typeof text === 'string' && text !== '') this.#say(field, text, to)
  }

  #say(field: TextField, piece: string, to: ChoiceWriting): void {
    const group = field === 'reasoning_content' ? 'reasoning' : field
    if (this.#open !== group) this.#turnTo(group, to)
    const text = this.#textOf(field)
    this.#write(field, text.push(piece), text.kept, to)
  }

  #turnTo(group: Group, to: ChoiceWriting): void {
    this.#endTexts(to)
    this.#open = group
  }

  /** The text that was open has ended. */
  #endTexts(to: ChoiceWriting): void {
    this.#open = undefined
    for (const [field, text] of this.#others ?? []) this.#write(field, text.flush(), text.kept, to)
    this.#others = undefined
    const content = this.#content
    this.#content = undefined
    if (content !== undefined) this.#write('content', content.flush(), content.kept, to)
  }

  #textOf(field: TextField): KeptHold {
    if (field === 'content') {
      this.#content ??= this.#parts.makeText()
      return this.#content
    }
    this.#others ??= new Map()
    const known = this.#others.get(field)
    if (known !== undefined) return known
    const made = this.#parts.makeText()
    this.#others.set(field, made)
    return made
  }

  #write(field: TextField, out: string, kept: string, to: ChoiceWriting): void {
    to.client.text(this.#index, field, out)
    to.kept?.text(this.#index, field, kept)
  }

  #takeCalls({ tool_calls: calls, function_call: legacy }: Json, to: ChoiceWriting): void {
    if (Array.isArray(calls)) for (const call of calls) if (isObject(call)) this.#takeCall(call, to)
    if (!isObject(legacy)) return
    if (this.#open !== 'calls') this.#turnTo('calls', to)
    this.#functionCall ??= new JsonChannel(this.#parts.makeText)
    const text = this.#functionCall
    this.#writeFunctionCall(this.#nameOf(legacy), text.push(argumentsOf(legacy['arguments'])), text.kept, to)
  }

  #takeCall(said: Json, to: ChoiceWriting): void {
    if (this.#open !== 'calls') this.#turnTo('calls', to)
    const part = isObject(said['custom']) ? 'custom' : 'function'
    const inner = isObject(said[part]) ? said[part] : {}
    const call = this.#callOf(said, part, to)
    const { id, type } = said
    const name = this.#nameOf(inner)
    const head = {
      ...(typeof id === 'string' && { id: this.#parts.screenWhole(id) }),
      ...(typeof type === 'string' && { type: this.#parts.screenWhole(type) }),
      ...(name !== undefined && { name }),
    }
    const piece = part === 'custom' ? textOf(inner['input']) : argumentsOf(inner['arguments'])
    this.#writeCall(call, call.text.push(piece), head, to)
  }

  /** Servers that give no index send calls whole, or one after the other; some give every call the same index. */
  #callOf({ index, id }: Json, part: Call['part'], to: ChoiceWriting): Call {
    this.#calls ??= []
    const isNumbered = typeof index === 'number'
    const at = isNumbered ? this.#calls.findLastIndex((call) => call.index === index) : this.#calls.length - 1
    const known = this.#calls[at]
    const isAnother = typeof id === 'string' && id !== '' && known?.id !== undefined && known.id !== id
    if (known !== undefined && !isAnother && !(known.id === undefined && !isNumbered && typeof id === 'string'))
      return known
    const last = this.#calls[CALLS_MAX - 1]
    if (last !== undefined) return last
    // Another call in the same place: the one before has ended.
    if (known !== undefined && isAnother) this.#writeCall(known, known.text.flush(), {}, to)
    const text = part === 'custom' ? this.#parts.makeText() : new JsonChannel(this.#parts.makeText)
    const made: Call = {
      index: isNumbered ? index : undefined,
      id: typeof id === 'string' && id !== '' ? id : undefined,
      part,
      text,
    }
    this.#calls.push(made)
    return made
  }

  #writeCall(call: Call, out: string, head: Partial<WrittenCall>, to: ChoiceWriting): void {
    const { index, part, text } = call
    const isNothing = out === '' && text.kept === '' && head.id === undefined && head.name === undefined
    if (isNothing) return
    const written = { ...(index !== undefined && { index }), ...head, part }
    to.client.call(this.#index, call, { ...written, text: out })
    to.kept?.call(this.#index, call, { ...written, text: text.kept })
  }

  #writeFunctionCall(name: string | undefined, out: string, kept: string, to: ChoiceWriting): void {
    if (name === undefined && out === '' && kept === '') return
    to.client.functionCall(this.#index, name, out)
    to.kept?.functionCall(this.#index, name, kept)
  }

  #nameOf({ name }: Json): string | undefined {
    return typeof name === 'string' && name !== '' ? this.#parts.screenWhole(name) : undefined
  }

  #takeUnknown(name: string, value: unknown, to: ChoiceWriting): void {
    const passed = this.#parts.onUnknown(name, value)
    if (passed === undefined) return
    to.client.member(this.#index, name, passed)
    to.kept?.member(this.#index, name, passed)
  }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
/** Some servers send arguments as an object. */
const argumentsOf = (value: unknown): string => (isObject(value) ? JSON.stringify(value) : textOf(value))
