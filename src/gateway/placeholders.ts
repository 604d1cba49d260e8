import { createHmac } from 'node:crypto'
import type { PlaceholderRestorer } from '../domain/screening.ts'

/**
 * What stands in a text where a value was. `<EMAIL>` where the value is gone; `<EMAIL_3f9c02ab71de>` where the answer
 * gets it back: a pseudonym, the same for the same value within a conversation, so that a model can tell two people
 * apart and an engine's prefix cache stays warm from turn to turn.
 *
 * A pseudonym is the beginning of an HMAC of the value, with a key made of a secret of the gateway, the tenant and the
 * conversation: nobody outside can try values out, and two conversations show nothing of each other. The table from
 * pseudonyms to values lives as long as the ticket, in memory, and is written nowhere.
 *
 * Placeholders have no quotes and no backslashes: put into a string of JSON, it stays one.
 */
export interface PlaceholderOptions {
  readonly isReversible: boolean
  /** A secret of this process, or of the gateways that share limits. */
  readonly secret: string
  readonly tenantId: string
  /** Asked once, when the first value is replaced. */
  readonly conversation: () => string
}

/** Hexadecimal digits of a pseudonym, 48 bits: two of a million values of one conversation share one with odds of 1:500. */
const DIGITS = 12

export class Placeholders implements PlaceholderRestorer {
  readonly #options: PlaceholderOptions
  readonly #values = new Map<string, string>()
  #key: Buffer | undefined
  #tenantKey: Buffer | undefined

  constructor(options: PlaceholderOptions) {
    this.#options = options
  }

  get tenantId(): string {
    return this.#options.tenantId
  }

  valueOf(placeholder: string): string | undefined {
    return this.#values.get(placeholder)
  }

  /** Pseudonyms that were made: at most one for each value of a bounded body. */
  get size(): number {
    return this.#values.size
  }

  /** What a value is replaced by. */
  make(category: string, value: string): string {
    if (!this.#options.isReversible) return `<${wordOf(category)}>`
    this.#key ??= this.#keyFor(`conversation\u0000${this.#options.conversation()}`)
    const placeholder = this.#pseudonym(this.#key, category, value)
    this.#values.set(placeholder, value)
    return placeholder
  }

  /**
   * What the name of an end user is replaced by, also where values are gone: two users stay two, for budgets and for
   * conversations. The same for the whole tenant, and never given back.
   */
  makeIdentity(category: string, value: string): string {
    this.#tenantKey ??= this.#keyFor('tenant')
    return this.#pseudonym(this.#tenantKey, category, value)
  }

  #keyFor(scope: string): Buffer {
    const { secret, tenantId } = this.#options
    return createHmac('sha256', secret).update(`${tenantId}\u0000${scope}`).digest()
  }

  /** Two values that share a pseudonym are told apart by another round of the HMAC. */
  #pseudonym(key: Buffer, category: string, value: string): string {
    const word = wordOf(category)
    for (let round = 0; ; round++) {
      const hmac = createHmac('sha256', key).update(`${round}\u0000${value}`).digest('hex')
      const digits = hmac.slice(0, DIGITS)
      const placeholder = `<${word}_${digits}>`
      const known = this.#values.get(placeholder)
      if (!LONG_RUN.test(digits) && (known === undefined || known === value)) return placeholder
    }
  }
}

/** Digits in a row that could be taken for a number of somebody. */
const LONG_RUN = /\d{6}/

/** Longest word of a placeholder: with digits and brackets it is one that an answer's screen waits for. */
const WORD_LENGTH_MAX = 48

/** `api-key` → `API_KEY`. */
const wordOf = (category: string): string =>
  category
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replaceAll(/^[^A-Z]+|_$/g, '')
    .slice(0, WORD_LENGTH_MAX) || 'VALUE'

const PLACEHOLDER = /<[A-Z][A-Z0-9_]{0,47}_(?![0-9a-f]*\d{6})[0-9a-f]{12}>/g

/** Where pseudonyms of an earlier turn stand in a text: what is found inside them is no finding. */
export function pseudonymsIn(text: string): ReadonlyArray<{ readonly start: number; readonly end: number }> {
  if (!text.includes('<')) return []
  return Array.from(text.matchAll(PLACEHOLDER), ({ index, 0: { length } }) => ({ start: index, end: index + length }))
}
