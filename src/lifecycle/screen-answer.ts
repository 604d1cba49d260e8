import type { Instant } from '../base/clock.ts'
import type { ChoiceDelta, Delta } from '../domain/delta.ts'
import type { ScreenFinding } from '../domain/screening.ts'
import type { AnswerScreened } from '../domain/screening-entry.ts'
import type { AnswerHead } from './ports.ts'
import type { AnswerScreen } from './screening-ports.ts'
import type { Ticket } from './ticket.ts'

/**
 * May this go out? Stands in the relay, between the counting of a delta and its client. What the screen holds has been
 * counted when it came; what the screen releases is what clients, stores and comparisons see. A block ends the whole
 * answer: every choice that has not ended by itself ends with the finish reason `content_filter`.
 */
export class ScreenedAnswer {
  readonly screen: AnswerScreen
  readonly #choiceCount: number
  /** Choices that have ended by themselves: at most as many as were asked for. */
  readonly #finished = new Set<number>()
  /** Screens that the head named. */
  #told: readonly string[] = []
  #isOver = false

  /** `choiceCount`: 0 for answers without choices. */
  constructor(screen: AnswerScreen, choiceCount: number) {
    this.screen = screen
    this.#choiceCount = choiceCount
  }

  get blockedBy(): ScreenFinding | undefined {
    return this.screen.blockedBy
  }

  /** What may go out now; after a block nothing does any more. */
  write(delta: Delta): Delta | undefined {
    return this.#isOver ? undefined : this.#released(this.screen.write(delta))
  }

  /** The answer is whole: what was held. */
  flush(): Delta | undefined {
    return this.#isOver ? undefined : this.#released(this.screen.flush())
  }

  /** What the client is told of it at the answer's head: of a whole answer all, of a stream what is known by then. */
  headOf(head: AnswerHead): AnswerHead {
    const { dropped, unscreened } = this.screen
    const { flagged = [], isPartial = false } = head.screened ?? {}
    this.#told = [...new Set([...flagged, ...this.#flagging])]
    return {
      ...head,
      screened: { flagged: this.#told, isPartial: isPartial || this.#isPartial },
      ...(dropped.length > 0 && { dropped }),
      ...(unscreened.length > 0 && { unscreened }),
    }
  }

  /** Screens that flagged something after the head: a client of a stream is told of them at its end. */
  get lateFlags(): readonly string[] {
    return this.#flagging.filter((screen) => !this.#told.includes(screen))
  }

  /** Something of the answer, or some screen, could not be looked into or look. */
  get #isPartial(): boolean {
    return this.screen.unscreened.length > 0 || this.screen.skipped.length > 0
  }

  get #flagging(): string[] {
    const screens = this.screen.findings.flatMap(({ action, screen }): string[] => (action === 'flag' ? [screen] : []))
    return [...new Set(screens)]
  }

  /** Undefined where nothing was found or left out, and of answers that no client gets. */
  entryOf(at: Instant, { id, request }: Ticket): AnswerScreened | undefined {
    const { findings, dropped, skipped, blockedBy } = this.screen
    if (request.errand !== undefined) return undefined
    if (findings.length === 0 && dropped.length === 0 && !this.#isPartial) return undefined
    const { tenant, key, screening } = request
    return {
      kind: 'answer-screened',
      at,
      ticketId: id,
      tenantId: tenant.id,
      keyId: key.id,
      verdict: blockedBy !== undefined ? 'blocked' : this.#isPartial ? 'partial' : 'passed',
      findings,
      skipped,
      dropped,
      policy: screening?.terms.version ?? '',
    }
  }

  #released(delta: Delta | undefined): Delta | undefined {
    if (this.screen.blockedBy === undefined) {
      for (const { index, finishReason } of delta?.choices ?? []) if (finishReason !== null) this.#finished.add(index)
      return delta
    }
    this.#isOver = true
    // Tensors and answers that pass through have no place for a finish reason.
    return this.#choiceCount === 0 ? undefined : this.#filtered(delta)
  }

  #filtered(delta: Delta | undefined): Delta {
    const ends: ChoiceDelta[] = []
    for (let index = 0; index < this.#choiceCount; index++)
      if (!this.#finished.has(index)) ends.push({ index, content: null, finishReason: 'content_filter' })
    const choices = [...unended(delta?.choices, this.#finished), ...ends]
    const kept = delta?.kept === undefined ? {} : { kept: [...unended(delta.kept, this.#finished), ...ends] }
    const { frame: _frame, ahead: _ahead, ...rest } = delta ?? { tokens: 0 }
    return { ...rest, choices, ...kept }
  }
}

/** What was released before the block, with the end that it has now. */
const unended = (choices: readonly ChoiceDelta[] = [], finished: ReadonlySet<number>): ChoiceDelta[] =>
  choices.filter(({ index }) => !finished.has(index)).map((choice) => ({ ...choice, finishReason: null }))
