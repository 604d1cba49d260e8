import type { Passage } from '../domain/corpus.ts'

/**
 * Which of the found passages does the prompt get, and in which order?
 *
 * The best that fit: in order of score, leaving out what would not fit any more and cutting the best one if even that is
 * too long alone. Then by document and position, not by score: neighbours read as they were written, and questions that
 * find the same passages give the engine the same prefix, token for token, which its cache then holds. Where they stand
 * in the conversation (behind everything that stays the same) is the wire's business.
 */
export function composePassages(
  ranked: readonly Passage[],
  bounds: { readonly passagesMax: number; readonly tokensMax: number },
): readonly Passage[] {
  const chosen: Passage[] = []
  let tokensLeft = bounds.tokensMax
  for (const passage of ranked) {
    if (chosen.length >= bounds.passagesMax || tokensLeft <= 0) break
    const fitting = passage.tokens <= tokensLeft ? passage : chosen.length === 0 ? cut(passage, tokensLeft) : undefined
    if (fitting === undefined) continue
    chosen.push(fitting)
    tokensLeft -= fitting.tokens
  }
  return chosen.sort((a, b) => compare(a.documentId, b.documentId) || a.position - b.position)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The beginning of a passage, up to a word's end. */
function cut(passage: Passage, tokens: number): Passage | undefined {
  const length = Math.floor((passage.text.length * tokens) / passage.tokens)
  const text = passage.text.slice(0, length).replace(/\s+\S*$/, '')
  return text === '' ? undefined : { ...passage, text, tokens }
}
