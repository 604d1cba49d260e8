import { searchTermsOf } from '../indexes/analyse-text.ts'

/**
 * Do two questions have the same words? The embedding of a sentence hardly moves when one rare word is replaced: with
 * "asthma" in place of "glaucoma", the built-in embedder takes four of five questions for the same at 0.9
 * (docs/adr/0016). So the words that carry meaning must be the same, in any inflection and order; similarity then
 * decides whether they are related in the same way. A synonym counts as another word, which costs hits but never gives a
 * wrong answer.
 */
export const wordsOf = (question: string): string =>
  [...new Set(searchTermsOf(question))]
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
  searchTermsOf(
    'please tell explain answer question quick know want wonder wondering curious help say give show ask asking like let ' +
      'thanks thank hello hi hey kindly briefly short quickly understand',
  ),
)
