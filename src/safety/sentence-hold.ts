import type { JudgingScreen, ScreenAction, TextHold } from '../domain/screening.ts'
import type { FindingTally } from './findings.ts'

/**
 * Judges an answer while it is written. Text is released at the end of a sentence, when every judge has scored it; a
 * sentence that does not end is released in parts, each scored with what was released of its sentence before.
 *
 * Where a text is cut depends on its letters alone, never on the deltas in which it came: a part ends behind the first
 * mark of an end that blank space follows, or, where there is none in time, at the last blank before the bound. So a
 * stream and a whole answer have the same findings.
 */
export interface AnswerJudge {
  readonly screen: JudgingScreen
  readonly category: string
  readonly action: ScreenAction
  /** Score from which on a sentence is a finding. */
  readonly scoreMin: number
  score(text: string): number
}

/**
 * Tokens are counted from the text alone, in quarters: four Latin letters are a token, three digits and a bit, and every
 * mark and every other letter is one. Tokenizers make fewer tokens of most texts.
 */
const QUARTERS = 4
/** Letters of one text that are held at most, whatever the mode: more than any answer has. */
export const HELD_LENGTH_MAX = 4 << 20

/** Letters of a sentence before a part of it that are judged with the part. */
const SAID_LENGTH_MAX = 2_048

const SENTENCE_END = /[.!?…]["'”’)\]]*\s|[。！？]|\n/

export class SentenceHold implements TextHold {
  readonly #judges: readonly AnswerJudge[]
  readonly #tally: FindingTally
  /** Quarters of a token that may be held; undefined: all of the text is. */
  readonly #weightMax: number | undefined
  #held = ''
  /** How much of what is held has been weighed, and what it weighs. */
  #weighed = 0
  #weight = 0
  /** What was released of the sentence that goes on. */
  #said = ''
  /** Judges that have found something in this sentence already. */
  #found: Set<AnswerJudge> | undefined

  /** `tokensMax` undefined: the text is judged as one, at its end. */
  constructor(judges: readonly AnswerJudge[], tally: FindingTally, tokensMax: number | undefined) {
    this.#judges = judges
    this.#tally = tally
    this.#weightMax = tokensMax === undefined ? undefined : tokensMax * QUARTERS
  }

  get heldLength(): number {
    return this.#held.length
  }

  push(piece: string): string {
    this.#held += piece
    let released = ''
    while (this.#tally.blockedBy === undefined) {
      const limit = this.#limit()
      const sentenceEnd = this.#weightMax === undefined ? 0 : endOf(this.#held, limit)
      const end = sentenceEnd > 0 ? sentenceEnd : limit < this.#held.length ? this.#breakAt(limit) : 0
      if (end === 0) break
      released += this.#release(end, sentenceEnd > 0)
    }
    return released
  }

  flush(): string {
    return this.#held === '' || this.#tally.blockedBy !== undefined ? '' : this.#release(this.#held.length, true)
  }

  #release(end: number, isEnd: boolean): string {
    const part = this.#held.slice(0, end)
    this.#held = this.#held.slice(end)
    this.#weighed = 0
    this.#weight = 0
    const sentence = this.#said + part
    for (const judge of this.#judges) this.#ask(judge, sentence)
    if (this.#tally.blockedBy !== undefined) {
      this.#held = ''
      return ''
    }
    this.#said = isEnd ? '' : sentence.slice(-SAID_LENGTH_MAX)
    if (isEnd) this.#found = undefined
    return part
  }

  #ask(judge: AnswerJudge, sentence: string): void {
    if (this.#found?.has(judge) === true) return
    const score = judge.score(sentence)
    if (score < judge.scoreMin) return
    this.#found ??= new Set()
    this.#found.add(judge)
    this.#tally.note(judge.screen, judge.category, judge.action, score)
  }

  /** Length of what may be held at most; the length of what is held where that is less. */
  #limit(): number {
    const { length } = this.#held
    if (this.#weightMax === undefined) return Math.min(length, HELD_LENGTH_MAX)
    while (this.#weighed < length) {
      const weight = this.#weight + weightOf(this.#held.charCodeAt(this.#weighed))
      if (weight > this.#weightMax) return Math.max(1, this.#weighed)
      this.#weight = weight
      this.#weighed++
    }
    return length
  }

  /** A long sentence is cut behind its last blank within the bound, and never inside a letter of two units. */
  #breakAt(limit: number): number {
    const blank = this.#held.lastIndexOf(' ', limit - 1)
    if (blank > 0) return blank + 1
    const code = this.#held.charCodeAt(limit - 1)
    return code >= 0xd800 && code < 0xdc00 && limit > 1 ? limit - 1 : limit
  }
}

function weightOf(code: number): number {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 32) return 1
  return code >= 48 && code <= 57 ? 2 : QUARTERS
}

/** Where the first sentence ends, if it ends within this length; 0 if it does not. */
function endOf(text: string, lengthMax: number): number {
  const match = SENTENCE_END.exec(text.length <= lengthMax ? text : text.slice(0, lengthMax))
  return match === null ? 0 : match.index + match[0].length
}
