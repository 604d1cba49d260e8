import type { EntitySpan, TextHold } from '../../domain/screening.ts'
import { escapeBegunAt, type NormalisedText, normalise, originalPlace, originalStart } from '../normalise.ts'
import type { EntityFinder } from './entity-finder.ts'
import { CONTEXT_UNITS } from './entity-scanner.ts'
import { END_LINE_UNITS_MAX, keyEnd } from './private-keys.ts'

/** Units of a value that are remembered at most. Only private keys are longer, and they are not given back. */
const VALUE_UNITS_MAX = 4096

/** Words that no rule looks at, by themselves and as the next piece. */
const WORD = /^[A-Za-z]{0,11}$/
const NEXT_WORD = /^ [A-Za-z]{1,11}$/
/** Units of context at which it is cut to what recognisers read. */
const CONTEXT_SLACK_UNITS = 512

/** What stands for an entity that was found. `value` is the text of the place, of very long ones the beginning. */
export type ReplaceEntity = (value: string, span: EntitySpan) => string

/**
 * A stream without its entities: everything goes out at once but the tail that could still become one.
 *
 * What is let out depends on the text alone, never on how it was cut: the scanner decides on a place only when no further
 * text can change its mind, or when the stream has ended.
 */
export class EntityHold implements TextHold {
  readonly #finder: EntityFinder
  readonly #replace: ReplaceEntity
  /** The folded text before the held one, as much of it as recognisers read. */
  #context = ''
  #held = ''
  /** Where the held text starts in the whole one. */
  #offset = 0
  #isMidRun = false
  /** Units of the held text, folded, that the rules have read already. */
  #readUnits = 0
  #key: OpenKey | undefined
  /** What is held is a short word of letters, or nothing. */
  #isWord: boolean
  readonly #canPass: boolean

  constructor(finder: EntityFinder, replace: ReplaceEntity) {
    this.#finder = finder
    this.#replace = replace
    this.#canPass = !finder.scanner.hasPatterns
    this.#isWord = this.#canPass
  }

  get heldLength(): number {
    return this.#held.length
  }

  push(piece: string): string {
    if (piece === '') return ''
    if (this.#isWord && NEXT_WORD.test(piece)) return this.#passWord(piece)
    this.#held += piece
    const out = this.#advance(false)
    this.#isWord = this.#canPass && !this.#isMidRun && this.#key === undefined && WORD.test(this.#held)
    return out
  }

  /** A short word with a space behind it is nothing, and the next may become something: nearly every piece of prose. */
  #passWord(piece: string): string {
    const out = `${this.#held} `
    this.#held = piece.slice(1)
    this.#offset += out.length
    this.#context += out
    if (this.#context.length > CONTEXT_SLACK_UNITS) this.#context = this.#context.slice(-CONTEXT_UNITS)
    return out
  }

  flush(): string {
    return this.#advance(true)
  }

  #advance(isWhole: boolean): string {
    let out = ''
    if (this.#key !== undefined) {
      out = this.#readKey(this.#key, isWhole)
      if (this.#key !== undefined || this.#held === '') return out
    }
    return out + this.#scanHeld(isWhole)
  }

  #scanHeld(isWhole: boolean): string {
    const { held, rest } = withoutHalf(this.#held, isWhole)
    const folded = normalise(held)
    const base = this.#context.length
    const text = base === 0 ? folded.text : this.#context + folded.text
    const { scanner } = this.#finder
    const found = scanner.scan(text, {
      from: base,
      rulesFrom: base + this.#readUnits,
      isMidRun: this.#isMidRun,
      isWhole,
    })
    // Read before anything is replaced: the one who replaces may use the finder, too.
    const { openFrom, rulesFrom, isMidRun, keyBodyFrom } = scanner
    const open = rawStart(folded, openFrom - base, held.length)
    let out = ''
    let from = 0
    for (const { screen, category, start, end } of found) {
      const place = originalPlace(folded, { start: start - base, end: end - base })
      out += held.slice(from, place.start) + this.#redact({ screen, category, ...place }, held)
      from = place.end
    }
    out += held.slice(from, open)
    this.#isMidRun = isMidRun
    this.#readUnits = rulesFrom - openFrom
    this.#context = text.slice(Math.max(0, openFrom - CONTEXT_UNITS), openFrom)
    this.#held = held.slice(open) + rest
    this.#offset += open
    if (keyBodyFrom >= 0) {
      this.#key = { start: this.#offset, value: '', tail: '', searchFrom: keyBodyFrom - openFrom }
      return out + this.#readKey(this.#key, isWhole)
    }
    return out
  }

  #redact(span: EntitySpan, held: string): string {
    const value = held.slice(span.start, span.end)
    if (this.#finder.isAllowed(value)) return value
    const { start, end } = span
    return this.#replace(value.slice(0, VALUE_UNITS_MAX), {
      ...span,
      start: start + this.#offset,
      end: end + this.#offset,
    })
  }

  /** Swallows what is held while a private key has no end line. */
  #readKey(key: OpenKey, isWhole: boolean): string {
    const { held, rest } = withoutHalf(this.#held, isWhole)
    const folded = normalise(held)
    const base = key.tail.length
    const text = key.tail + folded.text
    const end = keyEnd(text, key.searchFrom)
    const used = end < 0 ? held.length : originalPlace(folded, { start: end - base - 1, end: end - base }).end
    if (key.value.length < VALUE_UNITS_MAX)
      key.value += held.slice(0, Math.min(used, VALUE_UNITS_MAX - key.value.length))
    const until = end < 0 ? text.length : end
    const tailFrom = Math.max(0, until - CONTEXT_UNITS)
    key.tail = text.slice(tailFrom, until)
    key.searchFrom = Math.max(0, key.searchFrom - tailFrom, key.tail.length - END_LINE_UNITS_MAX)
    this.#held = held.slice(used) + rest
    this.#offset += used
    if (end < 0 && !isWhole) return ''
    this.#key = undefined
    this.#readUnits = 0
    this.#isMidRun = false
    this.#context = key.tail
    return this.#replace(key.value, {
      screen: 'secrets',
      category: 'private-key',
      start: key.start,
      end: this.#offset,
    })
  }
}

/** A private key whose end line has not come yet. */
interface OpenKey {
  readonly start: number
  value: string
  /** Folded text before the held one, for an end line that is cut. */
  tail: string
  /** Where in the tail an end line may start. */
  searchFrom: number
}

/** A text without the first half of a surrogate pair or of an escape at its end: the other half says what it is. */
const withoutHalf = (text: string, isWhole: boolean): { held: string; rest: string } => {
  if (isWhole) return { held: text, rest: '' }
  const last = text.charCodeAt(text.length - 1)
  const until = last >= 0xd800 && last < 0xdc00 ? text.length - 1 : escapeBegunAt(text)
  return until === text.length ? { held: text, rest: '' } : { held: text.slice(0, until), rest: text.slice(until) }
}

const rawStart = (folded: NormalisedText, place: number, length: number): number =>
  place >= folded.text.length ? length : originalStart(folded, place)
