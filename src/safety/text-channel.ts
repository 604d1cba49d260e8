import type { TextHold } from '../domain/screening.ts'
import type { FindingTally } from './findings.ts'
import type { KeptHold, RestoringHold } from './restoring-hold.ts'

/**
 * One text of an answer on its way out:
 *
 *   what the model wrote ─▶ entities redacted ─▶ sentences judged ─▶ placeholders restored ─▶ the client
 *                                                          └─ with placeholders ─▶ stores, caches, comparisons
 *
 * Redaction comes before restoring: a restored value is the client's own, which it sent in this request, and must come
 * back whole. A value that the model wrote by itself is redacted, even if the client sent the same value.
 *
 * A block cuts the text in front of what was found: what stands before it goes out, and nothing more.
 */
export interface ChannelParts {
  readonly tally: FindingTally
  /** Hold what could still become a finding, in order. */
  readonly holds: readonly TextHold[]
  /** Look at what goes out, and hold nothing. */
  readonly watchers: readonly TextHold[]
  readonly restoring: RestoringHold | undefined
}

/**
 * Stands where a finding that blocks stood; what follows it is cut off. Two code points that are no characters: a model
 * that wrote them could only shorten its own text, and only where a block ends it anyway.
 */
export const BLOCK_MARK = '\uFFFE\uFFFF'

export class TextChannel implements KeptHold {
  readonly #tally: FindingTally
  readonly #holds: readonly TextHold[]
  readonly #watchers: readonly TextHold[]
  readonly #restoring: RestoringHold | undefined
  #isOver = false
  kept = ''

  constructor({ tally, holds, watchers, restoring }: ChannelParts) {
    this.#tally = tally
    this.#holds = holds
    this.#watchers = watchers
    this.#restoring = restoring
  }

  get heldLength(): number {
    let length = this.#restoring?.heldLength ?? 0
    for (const hold of this.#holds) length += hold.heldLength
    return length
  }

  push(piece: string): string {
    this.kept = ''
    if (this.#isOver || piece === '' || this.#tally.blockedBy !== undefined) return ''
    for (const watcher of this.#watchers) watcher.push(piece)
    if (this.#tally.blockedBy !== undefined) return ''
    let text = piece
    for (let i = 0; i < this.#holds.length; i++) {
      text = (this.#holds[i] as TextHold).push(text)
      if (this.#tally.blockedBy !== undefined) return this.#cutOff(text, i + 1)
      if (text === '') return ''
    }
    return this.#restored(text)
  }

  flush(): string {
    this.kept = ''
    if (this.#isOver || this.#tally.blockedBy !== undefined) return ''
    for (const watcher of this.#watchers) watcher.flush()
    if (this.#tally.blockedBy !== undefined) return ''
    let text = ''
    for (let i = 0; i < this.#holds.length; i++) {
      const hold = this.#holds[i] as TextHold
      text = (text === '' ? '' : hold.push(text)) + hold.flush()
      if (this.#tally.blockedBy !== undefined) return this.#cutOff(text, i + 1)
    }
    return this.#ended(text)
  }

  /** What stands before the block goes through the rest of the holds, as the end of the text. */
  #cutOff(text: string, next: number): string {
    this.#isOver = true
    const at = text.indexOf(BLOCK_MARK)
    let before = at < 0 ? text : text.slice(0, at)
    for (let i = next; i < this.#holds.length; i++) {
      const hold = this.#holds[i] as TextHold
      before = hold.push(before) + hold.flush()
    }
    return this.#ended(before)
  }

  #restored(text: string): string {
    const restoring = this.#restoring
    if (restoring === undefined) {
      this.kept = text
      return text
    }
    const restored = restoring.push(text)
    this.kept = restoring.kept
    return restored
  }

  #ended(text: string): string {
    const restored = this.#restored(text)
    if (this.#restoring === undefined) return restored
    const rest = this.#restoring.flush()
    this.kept += this.#restoring.kept
    return restored + rest
  }
}
