import type { AnswerDifference } from '../../domain/entry.ts'
import type { KeptOutput, OutputDifference } from '../../domain/output-pair.ts'

/**
 * How do the two kept answers of a pair differ, for a person who looks at them?
 *
 * The shares of equal words and lengths are those of the journal, of the whole answers. The first difference is a place
 * in the kept texts, so that it can be shown: answers that differ only behind the cut, or only in what was replaced, have
 * none. Structured output is read whole, because a cut JSON text is none.
 *
 * Example: `{"a":1}` and `{"a":1` with the finish reasons `stop` and `length`: the first difference is at 6, the finish
 * reasons differ, and only the primary is JSON.
 */
export interface ComparedOutput {
  readonly kept: KeptOutput
  /** The answer as it was read, uncut. */
  readonly whole: string
}

export function compareOutputs(
  primary: ComparedOutput,
  shadow: ComparedOutput,
  { difference, isStructured }: { readonly difference: AnswerDifference; readonly isStructured: boolean },
): OutputDifference {
  const firstAt = firstDifference(primary.kept.text, shadow.kept.text)
  return {
    ...difference,
    isSameFinish: primary.kept.finishReason === shadow.kept.finishReason,
    ...(firstAt !== undefined && { firstAt }),
    ...(isStructured && { isJson: { primary: isJson(primary.whole), shadow: isJson(shadow.whole) } }),
  }
}

function firstDifference(a: string, b: string): number | undefined {
  const shorter = Math.min(a.length, b.length)
  let at = 0
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at === a.length && at === b.length ? undefined : at
}

/** What the parser says of a text that is none would quote it. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
