import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import type { AnswerIdentity, WholeWriter } from './dialect.ts'
import { BlockWalk, type BlockWriter, messagesUsage, type OpenedBlock } from './messages-walk.ts'

/** An answer as one message of Anthropic's Messages. */
export class MessagesWhole implements WholeWriter, BlockWriter {
  readonly #identity: AnswerIdentity
  readonly #walk: BlockWalk
  readonly #blocks: Array<{ readonly block: OpenedBlock; text: string }> = []

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
    this.#walk = new BlockWalk(this, identity.id)
  }

  add(choices: readonly ChoiceDelta[]): void {
    this.#walk.take(choices)
  }

  open(_index: number, block: OpenedBlock): void {
    this.#blocks.push({ block, text: '' })
  }

  append(index: number, _block: OpenedBlock, piece: string): void {
    const filled = this.#blocks[index]
    if (filled !== undefined) filled.text += piece
  }

  close(): void {}

  encode(usage: Usage, ours?: Readonly<Record<string, unknown>>): string {
    const { id, model } = this.#identity
    return JSON.stringify({
      id,
      type: 'message',
      role: 'assistant',
      model,
      content: this.#blocks.map(({ block, text }) => contentBlock(block, text)),
      stop_reason: this.#walk.stopReason,
      stop_sequence: this.#walk.stopSequence,
      stop_details: this.#walk.stopDetails,
      usage: messagesUsage(usage),
      ...(ours !== undefined && { spillway: ours }),
    })
  }
}

function contentBlock(block: OpenedBlock, text: string): object {
  if (block.type === 'text') return { type: 'text', text }
  if (block.type === 'thinking') return { type: 'thinking', thinking: text, signature: block.signature }
  return { type: 'tool_use', id: block.id, name: block.name, input: inputOf(text) }
}

/** A call without arguments is one with none. Arguments that are cut off or no JSON are passed on as they are, in one field. */
function inputOf(text: string): unknown {
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return { unparsed_input: text }
  }
}
