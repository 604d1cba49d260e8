import type { ScreenAction, ScreenDirection, ScreenFinding, ScreenName } from '../domain/screening.ts'

/** What the screens of one text found, added up by screen, category and action. The first block ends the text. */
export class FindingTally {
  readonly #direction: ScreenDirection
  readonly #findings = new Map<string, ScreenFinding>()
  #blockedBy: ScreenFinding | undefined

  constructor(direction: ScreenDirection) {
    this.#direction = direction
  }

  /** What is found behind a block does not count: nobody sees it. */
  note(screen: ScreenName, category: string, action: ScreenAction, score?: number): void {
    if (this.#blockedBy !== undefined) return
    const key = `${screen} ${category} ${action}`
    const before = this.#findings.get(key)
    const highest = score === undefined ? before?.score : Math.max(score, before?.score ?? 0)
    const finding: ScreenFinding = {
      screen,
      direction: this.#direction,
      category,
      action,
      count: (before?.count ?? 0) + 1,
      ...(highest !== undefined && { score: highest }),
    }
    this.#findings.set(key, finding)
    if (action === 'block') this.#blockedBy = finding
  }

  get blockedBy(): ScreenFinding | undefined {
    return this.#blockedBy
  }

  get list(): readonly ScreenFinding[] {
    return [...this.#findings.values()]
  }
}
