import type { Passage } from '../domain/corpus.ts'

/**
 * Chooses the passages of a prompt and their order.
 *
 * The best that fit are taken in order of score. A passage that does not fit any more is left out; the best one is cut
 * if it is too long alone. The chosen passages are ordered by document and position, not by score: neighbours read as
 * they were written, and questions that find the same passages give the engine the same prefix, token for token, which
 * stays cached. `wire/passage-text.ts` decides where they go in the conversation.
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

/** The beginning of a passage, up to the end of a word. */
function cut(passage: Passage, tokens: number): Passage | undefined {
  const length = Math.floor((passage.text.length * tokens) / passage.tokens)
  const text = passage.text.slice(0, length).replace(/\s+\S*$/, '')
  return text === '' ? undefined : { ...passage, text, tokens }
}
