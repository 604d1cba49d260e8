import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import { type ReasoningField, SIGNATURES } from './messages-content.ts'
import { toldDetails } from './usage-text.ts'

/**
 * The deltas of a chat's answer as a walk through the content blocks of Anthropic's Messages: one block at a time, each
 * opened, filled and closed. The stream and the whole answer are two ways to write down the same walk, so they cannot
 * differ.
 */
export interface BlockWriter {
  open(index: number, block: OpenedBlock): void
  append(index: number, block: OpenedBlock, piece: string): void
  close(index: number, block: OpenedBlock): void
}

export type OpenedBlock =
  | { readonly type: 'text' }
  | { readonly type: 'thinking'; readonly signature: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string }

/** A tool call of the engine, and the block that it became; a call without a name waits for it. */
interface ToolCall {
  readonly id: string
  waiting: string
  index: number
  block: OpenedBlock | undefined
}

export class BlockWalk {
  readonly #writer: BlockWriter
  readonly #answerId: string
  #index = -1
  #block: OpenedBlock | undefined
  #calls: Map<number, ToolCall> | undefined
  #finishReason: string | null = null
  #stopSequence: string | null = null
  #isRefused = false

  /** `answerId` makes names for tool calls whose engine gives them none: clients need one that no other turn has. */
  constructor(writer: BlockWriter, answerId: string) {
    this.#writer = writer
    this.#answerId = answerId
  }

  take(choices: readonly ChoiceDelta[]): void {
    for (const choice of choices) {
      // There is one answer: nobody can have asked for a second choice.
      if (choice.index !== 0) continue
      const { content, extra, finishReason, stopSequence } = choice
      if (extra !== undefined) this.#takeReasoning(extra)
      if (content !== null && content !== '') this.#append(this.#block?.type === 'text' ? this.#block : TEXT, content)
      if (extra !== undefined) this.#takeExtra(extra)
      if (finishReason !== null) this.#finishReason = finishReason
      if (stopSequence !== undefined) this.#stopSequence = stopSequence
    }
  }

  /** Closes the last block. */
  end(): void {
    if (this.#block !== undefined) this.#writer.close(this.#index, this.#block)
    this.#block = undefined
  }

  get stopReason(): string {
    if (this.#finishReason === 'length') return 'max_tokens'
    if (this.#finishReason === 'content_filter' || this.#isRefused) return 'refusal'
    // Some engines end a tool call with `stop`.
    if (this.#calls !== undefined) return 'tool_use'
    return this.#stopSequence === null ? 'end_turn' : 'stop_sequence'
  }

  get stopSequence(): string | null {
    return this.stopReason === 'stop_sequence' ? this.#stopSequence : null
  }

  get stopDetails(): object | null {
    return this.stopReason === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null
  }

  #takeReasoning(extra: Readonly<Record<string, unknown>>): void {
    // Engines on their way from one name to the other send both.
    const field: ReasoningField = typeof extra['reasoning_content'] === 'string' ? 'reasoning_content' : 'reasoning'
    const text = extra[field]
    if (typeof text !== 'string' || text === '') return
    const signature = SIGNATURES[field]
    this.#append(this.#block?.type === 'thinking' ? this.#block : { type: 'thinking', signature }, text)
  }

  #takeExtra({ refusal, tool_calls: calls }: Readonly<Record<string, unknown>>): void {
    if (typeof refusal === 'string' && refusal !== '') {
      this.#isRefused = true
      this.#append(this.#block?.type === 'text' ? this.#block : TEXT, refusal)
    }
    if (!Array.isArray(calls)) return
    for (let position = 0; position < calls.length; position++) this.#takeCall(calls[position], position)
  }

  #takeCall(call: unknown, position: number): void {
    if (typeof call !== 'object' || call === null) return
    const { index, id, function: said } = call as { index?: unknown; id?: unknown; function?: unknown }
    const { name, arguments: args } = (said ?? {}) as { name?: unknown; arguments?: unknown }
    const key = typeof index === 'number' ? index : position
    this.#calls ??= new Map()
    let known = this.#calls.get(key)
    if (known === undefined) {
      known = {
        id: typeof id === 'string' && id !== '' ? id : `toolu_${this.#answerId}_${this.#calls.size}`,
        waiting: '',
        index: -1,
        block: undefined,
      }
      this.#calls.set(key, known)
    }
    if (known.block === undefined && typeof name === 'string' && name !== '') {
      known.block = { type: 'tool_use', id: known.id, name }
      this.#open(known.block)
      known.index = this.#index
    }
    // Most engines send arguments as JSON text; some send the object itself.
    const piece = typeof args === 'string' ? args : args === undefined || args === null ? '' : JSON.stringify(args)
    if (known.block === undefined) known.waiting += piece
    else this.#fill(known, known.block, piece)
  }

  /** A late piece of a call belongs to its block, whichever block is open. */
  #fill(call: ToolCall, block: OpenedBlock, piece: string): void {
    const all = call.waiting + piece
    call.waiting = ''
    if (all !== '') this.#writer.append(call.index, block, all)
  }

  #append(block: OpenedBlock, piece: string): void {
    if (block !== this.#block) this.#open(block)
    this.#writer.append(this.#index, block, piece)
  }

  #open(block: OpenedBlock): void {
    this.end()
    this.#index++
    this.#block = block
    this.#writer.open(this.#index, block)
  }
}

const TEXT: OpenedBlock = { type: 'text' }

/** Usage in Anthropic's words: what was found in a cache is no part of `input_tokens`, and writing to it costs nothing. */
export function messagesUsage(usage: Usage): Record<string, unknown> {
  const { promptTokens, cachedTokens, outputTokens, priceUsd } = usage
  const thinking = thinkingTokensOf(usage)
  return {
    input_tokens: Math.max(0, promptTokens - cachedTokens),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
    ...(thinking !== undefined && { output_tokens_details: { thinking_tokens: thinking } }),
    ...(priceUsd !== undefined && { spillway: { price_usd: priceUsd } }),
  }
}

/** Tokens of the output that were thinking, where the engine tells. */
function thinkingTokensOf(usage: Usage): number | undefined {
  if (usage.told === undefined) return undefined
  const details = toldDetails(usage)['completion_tokens_details'] as { reasoning_tokens?: unknown } | null | undefined
  const tokens = details?.reasoning_tokens
  return typeof tokens === 'number' && tokens >= 0 ? Math.round(tokens) : undefined
}
