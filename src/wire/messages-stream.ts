import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import type { AnswerIdentity, StreamWriter } from './dialect.ts'
import { BlockWalk, type BlockWriter, messagesUsage, type OpenedBlock } from './messages-walk.ts'

/**
 * An answer as the events of Anthropic's Messages. What never changes within a block is put into JSON once; a delta is
 * then one concatenation and one `JSON.stringify` of the new text. Each event is named twice, as its readers expect.
 *
 * `message_start` has the prompt's tokens as they were estimated at admission; `message_delta` has those that the engine
 * counted, which readers take instead.
 */
const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'

/** Kinds of deltas, and the field of each that has the new text. */
const DELTAS: Readonly<Record<OpenedBlock['type'], string>> = {
  text: '"text_delta","text":',
  thinking: '"thinking_delta","thinking":',
  tool_use: '"input_json_delta","partial_json":',
}

export class MessagesStream implements StreamWriter, BlockWriter {
  readonly keepAlive = PING
  readonly #identity: AnswerIdentity
  readonly #walk: BlockWalk
  #rung = 'full'
  #isStarted = false
  #frames = ''
  /** The beginning of a delta of the block that was filled last. */
  #deltaHead = ''
  #deltaIndex = -1

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
    this.#walk = new BlockWalk(this, identity.id)
  }

  noteRung(rung: string): void {
    this.#rung = rung
  }

  chunk(choices: readonly ChoiceDelta[]): string {
    if (!this.#isStarted) this.#start()
    this.#walk.take(choices)
    return this.#taken()
  }

  /** Readers skip events whose names they do not know. */
  aside(more: Readonly<Record<string, unknown>>): string {
    return `event: spillway\ndata: ${JSON.stringify({ type: 'spillway', ...more })}\n\n`
  }

  end(usage: Usage): string {
    if (!this.#isStarted) this.#start()
    this.#walk.end()
    const { stopReason, stopSequence, stopDetails } = this.#walk
    const delta = { stop_reason: stopReason, stop_sequence: stopSequence, stop_details: stopDetails }
    this.#frames += `event: message_delta\ndata: {"type":"message_delta","delta":${JSON.stringify(delta)},"usage":${JSON.stringify(messagesUsage(usage))}}\n\n${STOP}`
    return this.#taken()
  }

  fail(error: string): string {
    return `event: error\ndata: ${error}\n\n`
  }

  open(index: number, block: OpenedBlock): void {
    this.#frames += `event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":${emptyBlock(block)}}\n\n`
  }

  append(index: number, block: OpenedBlock, piece: string): void {
    if (this.#deltaIndex !== index) {
      this.#deltaIndex = index
      this.#deltaHead = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":${DELTAS[block.type]}`
    }
    this.#frames += `${this.#deltaHead + JSON.stringify(piece)}}}\n\n`
  }

  close(index: number, block: OpenedBlock): void {
    if (block.type === 'thinking')
      this.#frames += `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"signature_delta","signature":"${block.signature}"}}\n\n`
    this.#frames += `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`
  }

  #start(): void {
    this.#isStarted = true
    const { id, model, promptTokens = 0 } = this.#identity
    const usage = messagesUsage({ promptTokens, cachedTokens: 0, outputTokens: 0 })
    const ours = this.#rung === 'full' ? '' : `,"spillway":${JSON.stringify({ rung: this.#rung })}`
    this.#frames += `event: message_start\ndata: {"type":"message_start","message":{"id":${JSON.stringify(id)},"type":"message","role":"assistant","model":${JSON.stringify(model)},"content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":${JSON.stringify(usage)}${ours}}}\n\n`
  }

  #taken(): string {
    const frames = this.#frames
    this.#frames = ''
    return frames
  }
}

function emptyBlock(block: OpenedBlock): string {
  if (block.type === 'text') return '{"type":"text","text":""}'
  if (block.type === 'thinking') return '{"type":"thinking","thinking":"","signature":""}'
  return `{"type":"tool_use","id":${JSON.stringify(block.id)},"name":${JSON.stringify(block.name)},"input":{}}`
}
