import { termsOf } from '../indexes/analyse-text.ts'

/**
 * Do two questions speak of the same things? An embedding of a sentence hardly moves when one rare word of it is another
 * one: of questions with "asthma" put for "glaucoma" the built-in embedder takes four in five for the same at 0.9
 * (docs/adr/0016). So the words that carry meaning must be the same, however they are bent, ordered and wrapped; what
 * similarity then decides is whether they are said of each other in the same way. A synonym is another word here: that
 * costs hits and never an answer.
 */
export const wordsOf = (question: string): string =>
  [...new Set(termsOf(question))]
    .filter((word) => !ASKING.has(word))
    .sort()
    .join(' ')

/** Compares the results of `wordsOf`. Two swapped letters in one word count as a typing mistake. */
export function hasSameWords(a: string, b: string): boolean {
  if (a === b) return true
  const [left, right] = [a.split(' '), b.split(' ')]
  const onlyLeft = left.filter((word) => !right.includes(word))
  const onlyRight = right.filter((word) => !left.includes(word))
  if (onlyLeft.length !== 1 || onlyRight.length !== 1) return onlyLeft.length + onlyRight.length === 0
  return isMistyped(onlyLeft[0] as string, onlyRight[0] as string)
}

/** Shorter words that differ by a swap are different words: `form`, `from`. */
const MISTYPED_LENGTH_MIN = 5

function isMistyped(a: string, b: string): boolean {
  if (a.length !== b.length || a.length < MISTYPED_LENGTH_MIN) return false
  let at = 0
  while (a[at] === b[at]) at++
  return a.slice(at + 2) === b.slice(at + 2) && a[at] === b[at + 1] && a[at + 1] === b[at]
}

/** Words of asking, which do not say what is asked. */
const ASKING: ReadonlySet<string> = new Set(
  termsOf(
    'please tell explain answer question quick know want wonder wondering curious help say give show ask asking like let ' +
      'thanks thank hello hi hey kindly briefly short quickly understand',
  ),
)
