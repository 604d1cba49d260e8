import { invalidRequest, type WireFault } from './openai-error.ts'

/**
 * How much work will `JSON.parse` be? One pass over the bytes, before anything is made from them.
 *
 * The size of a body does not bound the work: four megabytes of text parse in 5 ms, four megabytes of different keys in
 * 300 ms, with the event loop stopped. So the scan counts what costs: nesting, keys, containers (objects and lists)
 * and separators (values). It needs 1 µs for 2 kB of chat and 10 ms for four megabytes of digits. Strings longer than
 * a few bytes are skipped by a native search for the closing quote.
 *
 * The scan does not check the grammar. Text that is no JSON gets some counts, and then its error from `JSON.parse`.
 */
export interface JsonBounds {
  readonly depthMax: number
  readonly keysMax: number
  readonly containersMax: number
  readonly valuesMax: number
}

/**
 * Bounds of every body. Depth: schemas of tools nest about 30 deep, and code that walks a value must not run out of
 * stack. Keys and containers: 10,000 messages of three keys; at most 15 ms to parse. Values: an image of 1,024 × 1,024
 * points as a tensor; at most 20 ms.
 */
export const JSON_BOUNDS: JsonBounds = {
  depthMax: 128,
  keysMax: 32_768,
  containersMax: 32_768,
  valuesMax: 1_048_576,
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const LIST = 0x5b
const LIST_END = 0x5d
const OBJECT = 0x7b
const OBJECT_END = 0x7d

/** Strings are searched byte by byte up to this length: for short ones a native call costs more than the bytes. */
const SHORT_STRING_BYTES = 32

/** What is too much about these bytes; undefined when they may be parsed. */
export function tooComplex(bytes: Uint8Array, bounds: JsonBounds = JSON_BOUNDS): WireFault | undefined {
  let depth = 0
  let keys = 0
  let containers = 0
  let values = 0
  for (let i = 0; i < bytes.length; i++) {
    switch (bytes[i]) {
      case QUOTE:
        i = endOfString(bytes, i + 1)
        break
      case COLON:
        if (++keys > bounds.keysMax) return excess(`more than ${bounds.keysMax} keys`)
        break
      case COMMA:
        if (++values > bounds.valuesMax) return excess(`more than ${bounds.valuesMax} values`)
        break
      case OBJECT:
      case LIST:
        if (++containers > bounds.containersMax) return excess(`more than ${bounds.containersMax} objects and lists`)
        if (++depth > bounds.depthMax) return excess(`objects and lists more than ${bounds.depthMax} deep`)
        break
      case OBJECT_END:
      case LIST_END:
        depth--
    }
  }
  return undefined
}

/** The position of the closing quote; the end of the bytes when there is none. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let at = start; at < bytes.length; ) {
    const soon = Math.min(bytes.length, at + SHORT_STRING_BYTES)
    while (at < soon && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
    if (bytes[at] === QUOTE) return at
    const quote = bytes.indexOf(QUOTE, at)
    if (quote < 0) break
    if (!isEscaped(bytes, quote, at)) return quote
    at = quote + 1
  }
  return bytes.length
}

/** An odd number of backslashes in front: the quote is part of the string. */
function isEscaped(bytes: Uint8Array, at: number, start: number): boolean {
  let before = at - 1
  while (before >= start && bytes[before] === BACKSLASH) before--
  return (at - 1 - before) % 2 === 1
}

const excess = (what: string): WireFault =>
  invalidRequest(`The request body has ${what}. Send less in one request.`, null, 'body-too-complex')

/**
 * Whether an escape stands for half a character: `\ud83d` without the `\ude00` that completes it. Such a text has no
 * UTF-8, so no database and no engine can take it. Pairs of escapes are ordinary: many clients write emoji so.
 */
export function hasLoneSurrogate(text: string): boolean {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false
  let expectsLowAt = -1
  // Every escape is visited, so that an escaped backslash before a `u` is not taken for the start of an escape.
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) !== BACKSLASH) continue
    const half = halfAt(text, at)
    if ((half === 'low') !== (expectsLowAt === at)) return true
    if (expectsLowAt >= 0 && expectsLowAt < at) return true
    at += half === undefined ? 1 : 5
    expectsLowAt = half === 'high' ? at + 1 : -1
  }
  return expectsLowAt >= 0
}

/** Whether an escape stands for U+0000, which PostgreSQL cannot store in a text. */
export function hasNul(text: string): boolean {
  if (!text.includes('\\u0000')) return false
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at + 2)) {
    if (text.startsWith('u0000', at + 1)) return true
  }
  return false
}

/** Which half of a character the escape at this position stands for: `\ud800` to `\udbff`, or `\udc00` to `\udfff`. */
function halfAt(text: string, at: number): 'high' | 'low' | undefined {
  if (text.charCodeAt(at + 1) !== LETTER_U || lowerCase(text.charCodeAt(at + 2)) !== LETTER_D) return undefined
  const digit = lowerCase(text.charCodeAt(at + 3))
  if (digit === DIGIT_8 || digit === DIGIT_9 || digit === LETTER_A || digit === LETTER_B) return 'high'
  return digit >= LETTER_C && digit <= LETTER_F ? 'low' : undefined
}

/** Digits have this bit set, too. */
const lowerCase = (code: number): number => code | 0x20

const DIGIT_8 = 0x38
const DIGIT_9 = 0x39
const LETTER_A = 0x61
const LETTER_B = 0x62
const LETTER_C = 0x63
const LETTER_D = 0x64
const LETTER_F = 0x66
const LETTER_U = 0x75
