import type { KeptHold } from './restoring-hold.ts'

/**
 * The arguments of a tool call on their way out: JSON in pieces of any size, cut anywhere, in the middle of `\u0040` too.
 *
 * Screens see what the JSON means, not how it is spelled: each string, names of members included, is decoded and is a
 * text of its own, which is written again in JSON when it is released. So an escape hides nothing, a value that is put
 * back cannot break the JSON, and the arguments mean the same though they may be spelled otherwise. A number is looked
 * at when it has ended; one that is redacted becomes a string. Text that is not JSON is screened as it stands.
 *
 *   start ─▶ outside ⇄ string ⇄ escape          `{`, `[` or `"` begins JSON; anything else is plain text to its end
 *      └──▶ plain
 */
type State = 'start' | 'outside' | 'string' | 'escape' | 'plain'

/** What ends a string, or begins an escape. */
const STRING_MARK = /["\\]/g
const STRUCTURE: ReadonlySet<string> = new Set(['{', '}', '[', ']', ':', ','])
const ENDS_VALUE: ReadonlySet<string> = new Set(['}', ']', ','])
const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/
const WORD = /^(true|false|null)$/
/** Letters outside of strings that wait for the end of a number; whatever is longer is no number that means anything. */
const RUN_LENGTH_MAX = 64

const ESCAPED: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

export class JsonChannel implements KeptHold {
  readonly #makeText: () => KeptHold
  #state: State = 'start'
  #text: KeptHold | undefined
  /** An escape that has begun, with its backslash. */
  #escape = ''
  /** Letters outside of strings since the last mark of structure. */
  #run = ''
  /** The first half of a character that JSON writes as two escapes; the other half decides how it is written. */
  #half = { out: '', kept: '' }
  #out = ''
  kept = ''

  constructor(makeText: () => KeptHold) {
    this.#makeText = makeText
  }

  get heldLength(): number {
    return (this.#text?.heldLength ?? 0) + this.#escape.length + this.#run.length + this.#half.out.length
  }

  push(piece: string): string {
    this.#begin()
    let at = 0
    while (at < piece.length) {
      switch (this.#state) {
        case 'start':
          at = this.#readStart(piece, at)
          break
        case 'outside':
          at = this.#readOutside(piece, at)
          break
        case 'string':
          at = this.#readString(piece, at)
          break
        case 'escape':
          at = this.#readEscape(piece, at)
          break
        case 'plain':
          this.#write(this.#channel.push(piece.slice(at)), this.#channel.kept)
          at = piece.length
      }
    }
    return this.#out
  }

  flush(): string {
    this.#begin()
    if (this.#state === 'escape') this.#pushText(this.#escape)
    this.#escape = ''
    if (this.#state === 'outside') this.#endRun()
    else if (this.#text !== undefined) {
      const out = this.#text.flush()
      if (this.#state === 'plain') this.#write(out, this.#text.kept)
      else {
        this.#writeString(out, this.#text.kept)
        this.#endString()
      }
    }
    this.#text = undefined
    return this.#out
  }

  #begin(): void {
    this.#out = ''
    this.kept = ''
  }

  get #channel(): KeptHold {
    this.#text ??= this.#makeText()
    return this.#text
  }

  #write(out: string, kept = out): void {
    this.#out += out
    this.kept += kept
  }

  #readStart(piece: string, at: number): number {
    const letter = piece[at] as string
    if (letter === '"' || letter === '{' || letter === '[') this.#state = 'outside'
    else if (letter.trim() !== '') this.#state = 'plain'
    else {
      this.#write(letter)
      return at + 1
    }
    return at
  }

  #readOutside(piece: string, from: number): number {
    for (let at = from; at < piece.length; at++) {
      const letter = piece[at] as string
      const isQuote = letter === '"'
      if (!isQuote && !(STRUCTURE.has(letter) && this.#isEndedBy(letter))) {
        this.#run += letter
        if (this.#run.length > RUN_LENGTH_MAX || this.#text !== undefined) this.#spill()
        continue
      }
      this.#endRun()
      this.#write(letter)
      if (!isQuote) continue
      this.#state = 'string'
      return at + 1
    }
    return piece.length
  }

  /** Whether the mark is one of JSON's structure here; if not, it is a letter of some text (`2001:db8::1`). */
  #isEndedBy(mark: string): boolean {
    if (this.#text !== undefined) return false
    const value = this.#run.trim()
    if (value === '') return true
    return ENDS_VALUE.has(mark) && (WORD.test(value) || NUMBER.test(value))
  }

  /** Text outside of strings that is no JSON: it is screened as it comes. */
  #spill(): void {
    const out = this.#channel.push(this.#run)
    this.#write(out, this.#channel.kept)
    this.#run = ''
  }

  #endRun(): void {
    const run = this.#run
    const value = run.trim()
    if (value === '' && this.#text === undefined) this.#write(run)
    else if (this.#text === undefined && WORD.test(value)) this.#write(run)
    else this.#endValue(run, value)
    this.#run = ''
    this.#text = undefined
  }

  #endValue(run: string, value: string): void {
    const isNumber = this.#text === undefined && NUMBER.test(value)
    const text = this.#channel
    const pushed = text.push(isNumber ? value : run)
    let kept = text.kept
    const out = pushed + text.flush()
    kept += text.kept
    if (!isNumber) this.#write(out, kept)
    else if (out === value) this.#write(run)
    else
      this.#write(
        run.replace(value, () => JSON.stringify(out)),
        run.replace(value, () => JSON.stringify(kept)),
      )
  }

  #readString(piece: string, from: number): number {
    STRING_MARK.lastIndex = from
    const at = STRING_MARK.exec(piece)?.index ?? piece.length
    if (at > from) this.#pushText(piece.slice(from, at))
    if (at === piece.length) return at
    if (piece[at] === '"') {
      const out = this.#channel.flush()
      this.#writeString(out, this.#channel.kept)
      this.#endString()
      this.#write('"')
      this.#text = undefined
      this.#state = 'outside'
    } else {
      this.#escape = '\\'
      this.#state = 'escape'
    }
    return at + 1
  }

  #readEscape(piece: string, at: number): number {
    this.#escape += piece[at]
    const read = this.#escape
    if (read.startsWith('\\u')) {
      const isHex = /^\\u[0-9a-fA-F]{0,4}$/.test(read)
      if (isHex && read.length < 6) return at + 1
      this.#pushText(isHex ? String.fromCharCode(Number.parseInt(read.slice(2), 16)) : read.slice(0, -1))
      this.#escape = ''
      this.#state = 'string'
      // A letter that ended a broken escape is read as what it is.
      return isHex ? at + 1 : at
    }
    this.#pushText(ESCAPED[read[1] as string] ?? read)
    this.#escape = ''
    this.#state = 'string'
    return at + 1
  }

  #pushText(text: string): void {
    this.#writeString(this.#channel.push(text), this.#channel.kept)
  }

  /** Text of a string, in JSON's spelling. */
  #writeString(out: string, kept: string): void {
    if (out === '' && kept === '') return
    const written = spelled(this.#half.out + out)
    const same = out === kept && this.#half.out === this.#half.kept
    const writtenKept = same ? written : spelled(this.#half.kept + kept)
    this.#half = { out: written.half, kept: writtenKept.half }
    this.#write(written.text, writtenKept.text)
  }

  #endString(): void {
    if (this.#half.out !== '' || this.#half.kept !== '')
      this.#write(JSON.stringify(this.#half.out).slice(1, -1), JSON.stringify(this.#half.kept).slice(1, -1))
    this.#half = { out: '', kept: '' }
  }
}

function spelled(text: string): { readonly text: string; readonly half: string } {
  const last = text.charCodeAt(text.length - 1)
  const isHalf = last >= 0xd800 && last < 0xdc00
  const whole = isHalf ? text.slice(0, -1) : text
  return {
    text: JSON.stringify(whole).slice(1, -1),
    half: isHalf ? text.slice(-1) : '',
  }
}
