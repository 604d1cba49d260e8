import { fnv1a32, Rng } from '../../base/rng.ts'
import type { Request } from '../../domain/request.ts'

/**
 * Text with about a given number of tokens, for live servers. Common short English words are one token each, with the
 * blank before them, in every usual tokenizer; so a prompt of n tokens is n words.
 *
 * All text is cut from one long ring of words, made once: a prompt of a thousand words costs two look-ups and a copy.
 * Each start in the ring gives different text, so two prompts share a beginning only if they are meant to.
 */
const WORDS =
  'water river stone light house garden summer winter morning evening letter story music paper window market bridge ' +
  'island forest mountain village doctor teacher friend mother father sister brother city street station train ' +
  'ship boat engine machine number answer question reason power energy heat cold wind rain snow cloud field ' +
  'horse bird fish tree leaf root seed bread milk fruit table chair door wall floor roof road path hill ' +
  'valley lake ocean shore sand iron silver gold glass wood cloth color sound voice word name book page ' +
  'line point circle square corner center side front back left right first second third last next old new young ' +
  'small large long short high low deep wide open close early late quick slow strong weak clear dark warm dry ' +
  'carry bring take give make find keep hold leave reach turn move stand walk run write read speak hear see ' +
  'know think learn teach build break cut join open plan work play rest wait start stop change grow fall rise'

/** Many more starts than requests in flight. */
const RING_WORDS = 1 << 17
const SENTENCE_WORDS = 12

export class PromptWords {
  /** The ring twice over, so that a slice never wraps. */
  readonly #text: string
  /** Where each word starts, in characters. */
  readonly #starts: Uint32Array

  constructor(seed: number) {
    const words = WORDS.split(' ')
    const rng = Rng.stream(seed, 'prompt-words')
    const ring = Array.from({ length: RING_WORDS }, (_, i) => {
      const word = words[rng.below(words.length)] ?? 'water'
      return i % SENTENCE_WORDS === SENTENCE_WORDS - 1 ? `${word}.` : word
    })
    const starts = new Uint32Array(2 * RING_WORDS + 1)
    for (let i = 0; i < 2 * RING_WORDS; i++) {
      starts[i + 1] = (starts[i] ?? 0) + (ring[i % RING_WORDS]?.length ?? 0) + 1
    }
    const once = `${ring.join(' ')} `
    this.#text = once + once
    this.#starts = starts
  }

  /** `count` words from a place; the same place gives the same words. */
  take(place: number, count: number): string {
    let text = ''
    let from = place % RING_WORDS
    for (let left = count; left > 0; ) {
      const part = Math.min(left, RING_WORDS)
      text += this.#text.slice(this.#starts[from] ?? 0, (this.#starts[from + part] ?? 1) - (left === part ? 1 : 0))
      left -= part
      from = (from + part) % RING_WORDS
    }
    return text
  }

  /**
   * The messages of a request, as JSON. Words need no escaping. A named block is the text of its name; the rest is this
   * request's own.
   */
  messages(request: Request): string {
    const own = fnv1a32(request.id)
    let at = 0
    const parts = request.segments.map(({ role, tokens }, i) => {
      const text = this.#between(request.prefixHashes, at, Math.max(1, tokens - TEMPLATE_TOKENS), own + i * 7_919)
      at += tokens
      return `{"role":"${role === 'passage' || role === 'tool' ? 'user' : role}","content":"${text}"}`
    })
    return `[${parts.join(',')}]`
  }

  /** `count` tokens from the prompt's token `at` on. */
  #between(hashes: readonly number[], at: number, tokens: number, ownPlace: number): string {
    const namedEnd = Math.min(at + tokens, hashes.length * BLOCK_TOKENS)
    const pieces: string[] = []
    let from = at
    while (from < namedEnd) {
      const block = Math.floor(from / BLOCK_TOKENS)
      const end = Math.min(namedEnd, (block + 1) * BLOCK_TOKENS)
      pieces.push(this.take(fnv1a32(String(hashes[block])) + (from % BLOCK_TOKENS), wordsFor(end - from)))
      from = end
    }
    if (from < at + tokens) pieces.push(this.take(ownPlace, wordsFor(at + tokens - from)))
    return pieces.join(' ')
  }
}

/** Tokens per block name, as in the engine. */
const BLOCK_TOKENS = 16
const wordsFor = (tokens: number): number => Math.max(1, Math.round(tokens * WORDS_PER_TOKEN))

/** The full stops are tokens, too. */
const WORDS_PER_TOKEN = SENTENCE_WORDS / (SENTENCE_WORDS + 1)
/** A chat template puts about this many tokens around each message. */
const TEMPLATE_TOKENS = 4
