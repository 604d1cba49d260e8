import type { Cancellation } from '../base/cancellation.ts'
import type { Segment } from '../domain/request.ts'
import { type PromptTexts, promptTexts } from '../wire/prompt-text.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import { type LongWork, runLongWork, WORK_PER_BREATH } from './long-work.ts'
import { slicesOf } from './text-slices.ts'
import { append, piecesOf, type Tokenizer } from './tokenizer.ts'

/**
 * The text and tokens of a prompt. A chat becomes tokens as by a chat template: tools and schemas, each message with its
 * tool calls in its frame of special tokens, then the head of the answer. A completion's prompt is its tokens alone.
 *
 * Reading is the one costly thing that a simulated engine does (10 ms for 100 kB of English, 300 ms for as much of the
 * worst text). So a prompt is read once per request, for any number of answers or attempts, and a long prompt is read
 * in slices: `breathe` lets the event loop run in between. A prompt of more than `tokensMax` is refused anyway, so
 * reading stops soon after that.
 */
export interface PromptReaderOptions {
  readonly tokenizer: Tokenizer
  readonly tokensMax: number
  readonly breathe?: () => Promise<void>
}

/** A message of a chat, or one of the prompts of a completion. */
export interface ReadSegment {
  readonly role: Segment['role']
  readonly text: string
  /** Tokens of the segment, including the frame of a message. */
  readonly tokens: readonly number[]
  /** Tokens without text: images and the like. */
  readonly otherTokens: number
}

export interface ReadPrompt {
  readonly kind: 'chat' | 'completion'
  /** Tools, schemas and the like: in front of every prompt, with text that no answer is made from. */
  readonly fixed: readonly number[]
  readonly segments: readonly ReadSegment[]
  /** Tokens after the last message: the head of the answer. */
  readonly tail: readonly number[]
  /** The prompt has more than `tokensMax` tokens; how many is not known. */
  readonly isCut: boolean
}

/** Of a prompt sent as tokens, this many of the last become text to answer from. */
const TOKENS_SPELT_MAX = 4_096

type Body = ChatBody | CompletionBody

export class PromptReader {
  readonly tokenizer: Tokenizer
  #tokensMax: number
  readonly #breathe: (() => Promise<void>) | undefined
  readonly #roles = new Map<string, readonly number[]>()
  /** Readings by the body itself: the same body gets the same reading, and both are forgotten together. */
  readonly #known = new WeakMap<Body, ReadPrompt>()

  constructor(options: PromptReaderOptions) {
    this.tokenizer = options.tokenizer
    this.#tokensMax = options.tokensMax
    this.#breathe = options.breathe
  }

  /** Prompts may be this long from now on: a model with a longer context came. */
  allow(tokensMax: number): void {
    this.#tokensMax = Math.max(this.#tokensMax, tokensMax)
  }

  /** Returns at once for a short prompt, a promise for a long one. When cancelled, it returns what it has. */
  read(body: Body, cancellation?: Cancellation): ReadPrompt | Promise<ReadPrompt> {
    return this.#known.get(body) ?? this.run(this.reading(body), charactersOf(body), cancellation)
  }

  /** Runs work on prompts, of about this many characters. */
  run<T>(work: LongWork<T>, characters: number, cancellation?: Cancellation): T | Promise<T> {
    return runLongWork(work, { breathe: this.#breathe, isShort: characters <= WORK_PER_BREATH, cancellation })
  }

  *reading(body: Body): LongWork<ReadPrompt> {
    const known = this.#known.get(body)
    if (known !== undefined) return known
    let isCalledOff = false
    const slowly = this.#readSlowly(body)
    for (let step = slowly.next(false); ; step = slowly.next(isCalledOff)) {
      if (step.done !== true) {
        isCalledOff = yield step.value
        continue
      }
      if (!isCalledOff) this.#known.set(body, step.value)
      return step.value
    }
  }

  /** Yields the length of each slice after it is read; stops when it receives `true`. */
  *#readSlowly(body: Body): LongWork<ReadPrompt> {
    const kind = 'messages' in body ? 'chat' : 'completion'
    const isChat = kind === 'chat'
    const texts = promptTexts(body)
    const { messageStart, roleEnd, messageEnd } = this.tokenizer.frame
    const segments: ReadSegment[] = []
    const fixed: number[] = []
    let isCut = yield* this.#append(fixed, texts.fixedText, 0)
    let count = fixed.length
    for (const given of isCut ? [] : this.#givensOf(body, texts)) {
      const tokens: number[] = isChat ? [messageStart, ...this.#roleTokens(given.role), roleEnd] : []
      if (given.tokens !== undefined) append(tokens, given.tokens)
      else isCut = yield* this.#append(tokens, given.text, count)
      isCut ||= yield* this.#append(tokens, given.otherText, count)
      if (isChat) tokens.push(messageEnd)
      segments.push({ role: given.role, text: given.text, tokens, otherTokens: given.otherTokens })
      // The prompts of a completion are answered one by one, the messages of a chat together.
      count = isChat ? count + tokens.length + given.otherTokens : fixed.length
      if (isCut) break
    }
    const tail = isChat ? [messageStart, ...this.#roleTokens('assistant'), roleEnd] : []
    return { kind, fixed, segments, tail, isCut }
  }

  /** Says whether the prompt is to be cut there: it was called off, or is too long with this many tokens before it. */
  *#append(tokens: number[], text: string, before: number): LongWork<boolean> {
    for (const slice of slicesOf(text)) {
      append(tokens, this.tokenizer.encode(slice))
      const isCalledOff = yield slice.length
      if (isCalledOff || before + tokens.length > this.#tokensMax) return true
    }
    return false
  }

  #givensOf(body: Body, { segments }: PromptTexts): readonly GivenText[] {
    if ('messages' in body || typeof body.prompt === 'string') return segments
    const { prompt } = body
    const lists = (typeof prompt[0] === 'number' ? [prompt] : prompt) as ReadonlyArray<string | readonly number[]>
    return segments.map((given, i) => {
      const tokens = lists[i]
      if (typeof tokens !== 'object') return given
      const text = piecesOf(this.tokenizer, tokens.slice(-TOKENS_SPELT_MAX)).join('')
      return { ...given, otherTokens: 0, tokens, text }
    })
  }

  #roleTokens(role: string): readonly number[] {
    const known = this.#roles.get(role) ?? this.tokenizer.encode(role)
    this.#roles.set(role, known)
    return known
  }
}

interface GivenText {
  readonly role: Segment['role']
  readonly text: string
  readonly otherText: string
  readonly otherTokens: number
  /** The client sent tokens; the text is what they spell. */
  readonly tokens?: readonly number[]
}

/** Number of characters to tokenize. */
export function charactersOf(body: Body): number {
  const { segments, fixedText } = promptTexts(body)
  return segments.reduce((sum, { text, otherText }) => sum + text.length + otherText.length, fixedText.length)
}
