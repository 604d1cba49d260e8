import type { RewritingScreen } from '../../domain/screening.ts'
import { hiddenText } from './base64.ts'
import { CAPITAL, DIGIT, HEX, isDigit, isWordUnit, JOINER, kindOf, LETTER, NONE, OPEN } from './characters.ts'
import { domainEnd, LOCAL_UNITS_MAX, localStart } from './emails.ts'
import { ibanEnd } from './ibans.ts'
import { ipv6End } from './ip-addresses.ts'
import { letteredIdentityEnd } from './lettered-identities.ts'
import { NumberFinder } from './numbers.ts'
import { keyBodyStart, keyEnd } from './private-keys.ts'
import { SecretFinder } from './secrets.ts'
import { afterWords, HIDDEN_UNITS_MIN, UnitWindow } from './words.ts'

/**
 * Where in a text are entities?
 *
 * One pass from left to right over *runs*: letters, digits and the marks that e-mail addresses and keys have inside. Most
 * runs are words, and are left as soon as they end. Only a run with a digit or an `@`, and a number, is looked at twice.
 * Each recogniser reads a bounded stretch before and behind its place, so the time is linear in the text, and a stream
 * that keeps that stretch finds the same as the whole text.
 *
 * A scan of a text that is not whole stops where more text could change what was found: `openFrom`.
 */

const AT = 0x40
const PLUS = 0x2b
const BRACKET = 0x28
const DASH = 0x2d
const COLON = 0x3a
const SLASH = 0x2f
const EQUALS = 0x3d

/** Units of a run that are looked at as one key, number or address; of a longer one only addresses at its end count. */
const RUN_UNITS_MAX = LOCAL_UNITS_MAX

/** Units from which on it pays to copy a text: deltas of a stream are shorter. */
const WINDOWED_UNITS_MIN = 128
/** One window for all scanners: a scan ends before the next one starts. */
const window = new UnitWindow()

/** Units before a place that a recogniser may read. */
export const CONTEXT_UNITS = 96

/** Whether a run without digits may be a key or base64: words have no capitals inside, or are short. */
const mayHide = (text: string, s: number, p: number): boolean => {
  if (p - s < HIDDEN_UNITS_MIN) return false
  for (let i = s + 1; i < p; i++) {
    const unit = text.charCodeAt(i)
    if ((kindOf(unit) & CAPITAL) !== 0 || unit === 0x5f) return true
  }
  return false
}

/** A place in the scanned text. */
export interface ScannedPlace {
  readonly screen: RewritingScreen
  readonly category: string
  readonly start: number
  readonly end: number
}

export interface ScanOptions {
  readonly hasPii: boolean
  readonly hasSecrets: boolean
  /** Whether base64 is read. The scanner of what was hidden in it does not read a second layer. */
  readonly readsBase64: boolean
}

export class EntityScanner {
  /** Where the undecided tail of the last scan starts; the text's length if nothing is undecided. */
  openFrom = 0
  /** The tail starts inside of a run that is too long for anything but an e-mail address. */
  isMidRun = false
  /** Where the body of a private key starts whose first line was read and whose end was not; −1 without such a key. */
  keyBodyFrom = -1
  /** The last place is a private key without an end line: it goes on to the end of the text. */
  isKeyCut = false

  readonly #options: ScanOptions
  readonly #numbers = new NumberFinder()
  readonly #secrets = new SecretFinder()
  readonly #hidden: EntityScanner | undefined
  #text = ''
  #isWhole = true
  #found: ScannedPlace[] = []

  constructor(options: ScanOptions) {
    this.#options = options
    this.#hidden = options.readsBase64 ? new EntityScanner({ ...options, readsBase64: false }) : undefined
  }

  /** Scans from a place on. `isMidRun` is what the scan before said about that place. */
  scan(
    text: string,
    { from, isWhole, isMidRun }: { from: number; isWhole: boolean; isMidRun: boolean },
  ): ScannedPlace[] {
    this.#text = text
    this.#isWhole = isWhole
    this.#found = []
    this.isMidRun = false
    this.keyBodyFrom = -1
    this.isKeyCut = false
    this.openFrom = text.length
    let p = isMidRun ? this.#run(from, true) : from
    // What was hidden in base64 is read while the window is on the text around it.
    if (this.#hidden === undefined || text.length - p < WINDOWED_UNITS_MIN) {
      while (p !== OPEN && p < text.length) p = this.#step(afterWords(text, p))
    } else {
      window.open(text)
      while (p !== OPEN && p < text.length) p = this.#step(window.afterWords(p))
      window.close()
    }
    return this.#found
  }

  /** Looks at what starts here, and says where to go on. */
  #step(p: number): number {
    const text = this.#text
    if (p >= text.length) return p
    const unit = text.charCodeAt(p)
    const kind = kindOf(unit)
    if ((kind & LETTER) !== 0 || unit === 0x5f) return this.#run(p, false)
    if ((kind & DIGIT) !== 0) return this.#options.hasPii ? this.#number(p) : this.#run(p, false)
    if (unit === PLUS || unit === BRACKET) {
      if (!this.#options.hasPii) return p + 1
      if (p + 1 === text.length) return this.#isWhole ? p + 1 : this.#open(p)
      const next = text.charCodeAt(p + 1)
      return isDigit(next) || next === PLUS || next === BRACKET || (unit === PLUS && next === 0x20)
        ? this.#number(p)
        : p + 1
    }
    if (unit === DASH) {
      if (!this.#options.hasSecrets) return p + 1
      return text.charCodeAt(p + 1) === DASH || p + 1 === text.length ? this.#key(p) : p + 1
    }
    if (unit === COLON && this.#options.hasPii && !isWordUnit(text.charCodeAt(p - 1))) {
      return this.#decide(p, p + 1, 'ip', ipv6End(text, p, this.#isWhole))
    }
    return p + 1
  }

  #open(p: number): number {
    this.openFrom = p
    return OPEN
  }

  /** Takes what a recogniser said about `start`; `next` is where to go on if there is nothing. */
  #decide(start: number, next: number, category: string, end: number, screen: RewritingScreen = 'pii'): number {
    if (end === OPEN) return this.#open(start)
    if (end === NONE) return next
    this.#found.push({ screen, category, start, end })
    return end
  }

  #number(p: number): number {
    const end = this.#numbers.endAt(this.#text, p, this.#isWhole)
    if (end !== NONE) return this.#decide(p, p + 1, this.#numbers.category, end)
    return isDigit(this.#text.charCodeAt(p)) ? this.#run(p, false) : p + 1
  }

  #key(p: number): number {
    const text = this.#text
    const body = keyBodyStart(text, p, this.#isWhole)
    if (body === OPEN) return this.#open(p)
    if (body === NONE) {
      // Rules of many dashes are common: only the last five of their dashes can start a key.
      let end = p + 1
      while (text.charCodeAt(end) === DASH) end++
      return Math.max(p + 1, end - 5)
    }
    const end = keyEnd(text, body)
    if (end < 0 && !this.#isWhole) {
      this.keyBodyFrom = body
      return this.#open(p)
    }
    this.isKeyCut = end < 0
    this.#found.push({ screen: 'secrets', category: 'private-key', start: p, end: end < 0 ? text.length : end })
    return end < 0 ? text.length : end
  }

  /** Reads a run to its end, or to the end of the address in it. */
  #run(s: number, isMid: boolean): number {
    const text = this.#text
    let isLong = isMid
    let seen = 0
    let p = s
    for (; p < text.length; p++) {
      const unit = text.charCodeAt(p)
      const kind = kindOf(unit) & (LETTER | DIGIT | JOINER)
      if (kind !== 0) {
        seen |= kind
        if (p - s === RUN_UNITS_MAX && !isLong) {
          const before = this.#found.length
          const end = this.#runEnd(s, p, seen)
          if (end !== p || this.#found.length > before) return end
          isLong = true
        }
        continue
      }
      if (unit !== AT || !this.#options.hasPii) break
      const local = localStart(text, p, s)
      if (local < p) {
        const end = domainEnd(text, p, this.#isWhole)
        if (end === OPEN) {
          this.isMidRun = isLong || local > s
          return this.#open(local)
        }
        if (end > NONE) return this.#decide(local, p, 'email', end)
      }
      return p + 1
    }
    if (p === text.length && !this.#isWhole) {
      this.isMidRun = isLong
      return this.#open(isLong ? Math.max(s, p - LOCAL_UNITS_MAX) : s)
    }
    return isLong || p === s ? p : this.#runEnd(s, p, seen)
  }

  /** What the run from `s` to `p` is, if anything; `p` otherwise. */
  #runEnd(s: number, p: number, seen: number): number {
    const text = this.#text
    const isWhole = this.#isWhole
    if (this.#options.hasPii) {
      if (text.charCodeAt(p) === COLON && p - s <= 4 && (kindOf(text.charCodeAt(s)) & HEX) !== 0) {
        const end = ipv6End(text, s, isWhole)
        if (end !== NONE) return this.#decide(s, p, 'ip', end)
      }
      if ((seen & DIGIT) !== 0) {
        const iban = ibanEnd(text, s, isWhole)
        if (iban !== NONE) return this.#decide(s, p, 'iban', iban)
        const identity = letteredIdentityEnd(text, s, p)
        if (identity !== NONE) return this.#decide(s, p, 'national-id', identity)
      }
    }
    const next = text.charCodeAt(p)
    if ((seen & DIGIT) !== 0 || next === SLASH || next === EQUALS || mayHide(text, s, p)) return this.#secret(s, p)
    return p
  }

  #secret(s: number, p: number): number {
    const isWhole = this.#isWhole
    if (this.#options.hasSecrets) {
      const secrets = this.#secrets
      const end = secrets.endAt(this.#text, { s, p, isWhole })
      // The whole run waits, or what is left of it would be another run.
      if (end === OPEN) return this.#open(s)
      if (end !== NONE) return this.#decide(secrets.start, p, secrets.category, end, 'secrets')
    }
    if (this.#hidden === undefined) return p
    const hidden = hiddenText(this.#text, s, isWhole)
    if (hidden === OPEN) return this.#open(s)
    if (hidden === NONE) return p
    const found = this.#hidden.scan(hidden.text, { from: 0, isWhole: true, isMidRun: false })[0]
    return found === undefined ? p : this.#decide(s, p, found.category, hidden.end, found.screen)
  }
}
