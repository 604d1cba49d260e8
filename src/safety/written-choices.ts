import type { ChoiceDelta } from '../domain/delta.ts'

/**
 * Puts what was released into the choices of a delta. Writers of every dialect read a choice in one order: reasoning,
 * content, refusal, calls. Pieces that come in this order are one choice of the delta, as in an answer of one piece;
 * another order begins a further one.
 */
export type TextField = 'reasoning_content' | 'reasoning' | 'content' | 'refusal'

const RANKS: Readonly<Record<TextField, number>> = { reasoning_content: 0, reasoning: 0, content: 1, refusal: 2 }
const CALLS_RANK = 3

interface Writing {
  index: number
  content: string | null
  finishReason: string | null
  extra?: Record<string, unknown>
  stopSequence?: string
}

/** A piece of a tool call, in the words of its engine. */
export interface WrittenCall {
  readonly index?: number
  readonly id?: string
  readonly type?: string
  /** `function` or `custom`, with the name of the member that has the text. */
  readonly part: 'function' | 'custom'
  readonly name?: string
  readonly text: string
}

export class WrittenChoices {
  readonly #choices: Writing[] = []
  #rank = 0
  /** The element of the last choice that each call was written to. */
  readonly #calls = new Map<object, Record<string, unknown>>()

  get list(): readonly ChoiceDelta[] {
    return this.#choices
  }

  text(index: number, field: TextField, text: string): void {
    if (text === '') return
    const choice = this.#at(index, RANKS[field])
    if (field === 'content') choice.content = (choice.content ?? '') + text
    else {
      choice.extra ??= {}
      choice.extra[field] = ((choice.extra[field] as string | undefined) ?? '') + text
    }
  }

  /** `key` names the call: pieces of the same call are joined. */
  call(index: number, key: object, { part, name, text, ...head }: WrittenCall): void {
    const choice = this.#at(index, CALLS_RANK)
    const member = part === 'custom' ? 'input' : 'arguments'
    const written = this.#calls.get(key)
    if (written !== undefined) {
      const said = written[part] as Record<string, unknown>
      if (text !== '') said[member] = ((said[member] as string | undefined) ?? '') + text
      return
    }
    const element = { ...head, [part]: { ...(name !== undefined && { name }), [member]: text } }
    this.#calls.set(key, element)
    choice.extra ??= {}
    choice.extra['tool_calls'] ??= []
    ;(choice.extra['tool_calls'] as object[]).push(element)
  }

  /** The older single call. */
  functionCall(index: number, name: string | undefined, text: string): void {
    const choice = this.#at(index, CALLS_RANK)
    choice.extra ??= {}
    const before = choice.extra['function_call'] as { name?: string; arguments: string } | undefined
    choice.extra['function_call'] = {
      ...before,
      ...(name !== undefined && { name }),
      arguments: (before?.arguments ?? '') + text,
    }
  }

  /** Any other member of the choice's message. */
  member(index: number, name: string, value: unknown): void {
    const choice = this.#at(index, CALLS_RANK)
    choice.extra ??= {}
    choice.extra[name] = value
  }

  finish(
    index: number,
    finishReason: string,
    { content, stopSequence }: Pick<ChoiceDelta, 'content' | 'stopSequence'>,
  ): void {
    const choice = this.#at(index, this.#rank)
    choice.finishReason = finishReason
    // An engine that says an empty content, and not none, is passed on so.
    if (content === '') choice.content ??= ''
    if (stopSequence !== undefined) choice.stopSequence = stopSequence
  }

  #at(index: number, rank: number): Writing {
    const last = this.#choices.at(-1)
    if (last !== undefined && last.index === index && rank >= this.#rank) {
      this.#rank = rank
      return last
    }
    const made: Writing = { index, content: null, finishReason: null }
    this.#choices.push(made)
    this.#calls.clear()
    this.#rank = rank
    return made
  }
}
