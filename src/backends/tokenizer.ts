import { slicesOf } from './text-slices.ts'

/** Text ↔ tokens, as far as an engine without a model needs them. */
export interface Tokenizer {
  /**
   * Tokens of a text, never special ones: everything that a client writes is text. Takes any length, but is slow on
   * long texts.
   */
  encode(slice: string): number[]
  has(token: number): boolean
  /** The bytes that a token stands for; none when there is no such token. */
  bytesOf(token: number): Uint8Array
  /** Tokens that frame a chat message. No text encodes to them, so a client cannot end a message by writing one. */
  readonly frame: { readonly messageStart: number; readonly roleEnd: number; readonly messageEnd: number }
}

/** Tokens of a whole text at once. */
export function encodeWhole(tokenizer: Tokenizer, text: string): number[] {
  const tokens: number[] = []
  for (const slice of slicesOf(text)) append(tokens, tokenizer.encode(slice))
  return tokens
}

export function append(tokens: number[], more: readonly number[]): void {
  // No spread: a slice of a megabyte would overflow the stack.
  for (let i = 0; i < more.length; i++) tokens.push(more[i] as number)
}

/**
 * One string per token; together they spell the text. A character of several tokens comes with its last token; bytes
 * that never become a character come as U+FFFD at the end, as in every decoder.
 */
export function piecesOf(tokenizer: Tokenizer, tokens: readonly number[]): string[] {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const pieces = tokens.map((token) => decoder.decode(tokenizer.bytesOf(token), { stream: true }))
  const rest = decoder.decode()
  if (rest !== '') pieces.push((pieces.pop() ?? '') + rest)
  return pieces
}

/** The same as one text, in stretches, for callers that pause in between. */
export function* spell(tokenizer: Tokenizer, tokens: readonly number[]): Generator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  for (let from = 0; from < tokens.length; from += TOKENS_PER_STRETCH) {
    let text = ''
    for (const token of tokens.slice(from, from + TOKENS_PER_STRETCH)) {
      text += decoder.decode(tokenizer.bytesOf(token), { stream: true })
    }
    yield text
  }
  yield decoder.decode()
}

/** Tokens of a stretch: a few milliseconds. */
const TOKENS_PER_STRETCH = 4_096
