import type { PlaceholderRestorer, TextHold } from '../domain/screening.ts'

/**
 * Puts true values in the place of placeholders (`<EMAIL_3f9c>`), over any cut of the text. Only a tail that could still
 * become a placeholder is held. A placeholder that nobody here made is a text like any other, and stays.
 *
 * `kept` is what was released last as it came: stores keep placeholders, and only the client gets values.
 */
export interface KeptHold extends TextHold {
  /** What `push` or `flush` released last, with its placeholders. */
  readonly kept: string
}

/** Longest placeholder, with its brackets: its word may be the name of a tenant's own pattern. Nothing longer is waited for. */
export const PLACEHOLDER_LENGTH_MAX = 96

const OPEN = '<'
const CLOSE = 62

export class RestoringHold implements KeptHold {
  readonly #restorer: PlaceholderRestorer
  #held = ''
  kept = ''

  constructor(restorer: PlaceholderRestorer) {
    this.#restorer = restorer
  }

  get heldLength(): number {
    return this.#held.length
  }

  push(piece: string): string {
    if (this.#held === '' && !piece.includes(OPEN)) {
      this.kept = piece
      return piece
    }
    const text = this.#held + piece
    this.#held = ''
    let restored = ''
    let from = 0
    for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, from)) {
      const end = nameEnd(text, open + 1)
      if (end === text.length && end - open < PLACEHOLDER_LENGTH_MAX) {
        this.#held = text.slice(open)
        this.kept = text.slice(0, open)
        return restored + text.slice(from, open)
      }
      const until = text.charCodeAt(end) === CLOSE ? end + 1 : end
      restored += text.slice(from, open) + this.#valueOf(text.slice(open, until))
      from = until
    }
    this.kept = text
    return restored + text.slice(from)
  }

  flush(): string {
    const rest = this.#held
    this.#held = ''
    this.kept = rest
    return rest
  }

  #valueOf(text: string): string {
    return this.#restorer.valueOf(text) ?? text
  }
}

/** Where a placeholder's name ends that begins here: at the first letter that no name has, or where it is too long. */
function nameEnd(text: string, from: number): number {
  const until = Math.min(text.length, from + PLACEHOLDER_LENGTH_MAX - 1)
  let at = from
  // The first letter is a capital one: most tags of HTML and comparisons in code are told apart by it.
  if (at < until && !isCapital(text.charCodeAt(at))) return at
  while (at < until && isNameLetter(text.charCodeAt(at))) at++
  return at
}

const isCapital = (code: number): boolean => code >= 65 && code <= 90

const isNameLetter = (code: number): boolean =>
  isCapital(code) || (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 95 || code === 45
