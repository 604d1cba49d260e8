import { writeFileSync } from 'node:fs'
import { Rng } from '../../src/base/rng.ts'

/**
 * A language model in a file, as llama.cpp loads it (GGUF, version 3): the llama architecture in its smallest, with
 * random weights from a seed, and a vocabulary of words beside the bytes. It knows nothing, but everything about it is
 * real: loading, tokens, batches, caches, sampling.
 *
 * Rows of the output matrix that stand for anything but words are zero, so that a word always scores higher: what it
 * says is words, and it never ends by itself.
 */
export interface TinyModel {
  readonly layers?: number
  readonly contextTokens?: number
  readonly seed?: number
}

const SIZE = { embedding: 64, heads: 2, feedForward: 128 } as const

const WORDS =
  'a the weir dam water river holds spills level low high gate flow lake stone bridge rain flood calm deep wide slow fast over under near far open shut rises falls turns keeps lets runs stands'.split(
    ' ',
  )

/** As sentencepiece numbers them. */
const TOKEN = { normal: 1, unknown: 2, control: 3, byte: 6 } as const

const TYPE = { uint32: 4, int32: 5, float32: 6, string: 8, array: 9 } as const
const ALIGNMENT = 32

interface Token {
  readonly text: string
  readonly score: number
  readonly type: number
}

function vocabulary(): Token[] {
  const bytes = Array.from({ length: 256 }, (_, byte) => ({
    text: `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
    score: 0,
    type: TOKEN.byte,
  }))
  const words = WORDS.map((word, i) => ({ text: `\u2581${word}`, score: -1 - i, type: TOKEN.normal }))
  return [
    { text: '<unk>', score: 0, type: TOKEN.unknown },
    { text: '<s>', score: 0, type: TOKEN.control },
    { text: '</s>', score: 0, type: TOKEN.control },
    ...bytes,
    // The blank alone, for words that it does not know.
    { text: '\u2581', score: -100, type: TOKEN.normal },
    ...words,
  ]
}

interface Tensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly values: Float32Array
}

export function writeTinyGguf(path: string, { layers = 1, contextTokens = 2_048, seed = 1 }: TinyModel = {}): void {
  const tokens = vocabulary()
  const tensors = weights(tokens, layers, Rng.stream(seed, 'weights'))
  const facts = metadata(tokens, layers, contextTokens)
  const head = new Bytes()
  head.raw(Buffer.from('GGUF'))
  head.uint32(3)
  head.uint64(tensors.length)
  head.uint64(facts.length)
  for (const write of facts) write(head)
  let offset = 0
  for (const { name, shape, values } of tensors) {
    head.string(name)
    head.uint32(shape.length)
    for (const size of shape) head.uint64(size)
    // 32-bit floats.
    head.uint32(0)
    head.uint64(offset)
    offset += padded(values.byteLength)
  }
  head.pad()
  for (const { values } of tensors) {
    head.raw(Buffer.from(values.buffer))
    head.pad()
  }
  writeFileSync(path, head.all())
}

type Fact = (out: Bytes) => void

function metadata(tokens: readonly Token[], layers: number, contextTokens: number): Fact[] {
  const { embedding, heads, feedForward } = SIZE
  const list = <T>(key: string, type: number, values: readonly T[], write: (out: Bytes, value: T) => void): Fact => {
    return (out) => {
      out.string(key)
      out.uint32(TYPE.array)
      out.uint32(type)
      out.uint64(values.length)
      for (const value of values) write(out, value)
    }
  }
  const text = (key: string, value: string): Fact => {
    return (out) => {
      out.string(key)
      out.uint32(TYPE.string)
      out.string(value)
    }
  }
  const count = (key: string, value: number): Fact => {
    return (out) => {
      out.string(key)
      out.uint32(TYPE.uint32)
      out.uint32(value)
    }
  }
  const number = (key: string, value: number): Fact => {
    return (out) => {
      out.string(key)
      out.uint32(TYPE.float32)
      out.float32(value)
    }
  }
  return [
    text('general.architecture', 'llama'),
    text('general.name', 'tiny random llama'),
    count('general.file_type', 0),
    count('llama.context_length', contextTokens),
    count('llama.embedding_length', embedding),
    count('llama.block_count', layers),
    count('llama.feed_forward_length', feedForward),
    count('llama.attention.head_count', heads),
    count('llama.attention.head_count_kv', heads),
    count('llama.rope.dimension_count', embedding / heads),
    count('llama.vocab_size', tokens.length),
    number('llama.attention.layer_norm_rms_epsilon', 1e-5),
    text('tokenizer.ggml.model', 'llama'),
    list('tokenizer.ggml.tokens', TYPE.string, tokens, (out, token) => out.string(token.text)),
    list('tokenizer.ggml.scores', TYPE.float32, tokens, (out, token) => out.float32(token.score)),
    list('tokenizer.ggml.token_type', TYPE.int32, tokens, (out, token) => out.uint32(token.type)),
    count('tokenizer.ggml.unknown_token_id', 0),
    count('tokenizer.ggml.bos_token_id', 1),
    count('tokenizer.ggml.eos_token_id', 2),
  ]
}

function weights(tokens: readonly Token[], layers: number, rng: Rng): Tensor[] {
  const { embedding, feedForward } = SIZE
  const random = (name: string, ...shape: number[]): Tensor => {
    const length = shape.reduce((product, size) => product * size, 1)
    const values = Float32Array.from({ length }, () => (rng.next() - 0.5) / 2)
    return { name, shape, values }
  }
  const ones = (name: string): Tensor => ({ name, shape: [embedding], values: new Float32Array(embedding).fill(1) })
  const output = random('output.weight', embedding, tokens.length)
  tokens.forEach((_, i) => {
    if (i < tokens.length - WORDS.length) output.values.fill(0, i * embedding, (i + 1) * embedding)
  })
  const blocks = Array.from({ length: layers }, (_, i) => [
    ones(`blk.${i}.attn_norm.weight`),
    ...['q', 'k', 'v', 'output'].map((part) => random(`blk.${i}.attn_${part}.weight`, embedding, embedding)),
    ones(`blk.${i}.ffn_norm.weight`),
    random(`blk.${i}.ffn_gate.weight`, embedding, feedForward),
    random(`blk.${i}.ffn_up.weight`, embedding, feedForward),
    random(`blk.${i}.ffn_down.weight`, feedForward, embedding),
  ])
  const embed = random('token_embd.weight', embedding, tokens.length)
  return [embed, ones('output_norm.weight'), output, ...blocks.flat()]
}

const padded = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT

/** Little-endian, as the format wants it. */
class Bytes {
  readonly #parts: Buffer[] = []
  #length = 0

  raw(part: Buffer): void {
    this.#parts.push(part)
    this.#length += part.length
  }

  uint32(value: number): void {
    const part = Buffer.alloc(4)
    part.writeUInt32LE(value)
    this.raw(part)
  }

  uint64(value: number): void {
    const part = Buffer.alloc(8)
    part.writeBigUInt64LE(BigInt(value))
    this.raw(part)
  }

  float32(value: number): void {
    const part = Buffer.alloc(4)
    part.writeFloatLE(value)
    this.raw(part)
  }

  string(text: string): void {
    const part = Buffer.from(text, 'utf8')
    this.uint64(part.length)
    this.raw(part)
  }

  pad(): void {
    this.raw(Buffer.alloc(padded(this.#length) - this.#length))
  }

  all(): Buffer {
    return Buffer.concat(this.#parts)
  }
}
