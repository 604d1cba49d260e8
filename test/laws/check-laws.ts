import type { Entry } from '../../src/domain/entry.ts'
import { LawChecker, type LawOptions, type Violation } from '../../src/sim/laws.ts'

/** Which laws does this journal break? For tests that have it whole; simulations ask the same checker as they go. */
export function checkLaws(
  entries: readonly Entry[],
  options: LawOptions & { /** Then a ticket that is still alive is a violation. */ readonly isOver?: boolean } = {},
): readonly Violation[] {
  const laws = new LawChecker(options)
  for (const entry of entries) laws.take(entry)
  return options.isOver === true ? laws.finish() : laws.violations
}
