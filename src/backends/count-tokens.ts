import { slicesOf } from './text-slices.ts'
import type { Tokenizer } from './tokenizer.ts'

/** How many tokens are these texts, each by itself? Stops where the answer no longer matters, or when time is up. */
export interface CountLimits {
  /** The texts' tokens together: beyond this the rest is not counted. */
  readonly tokensMax: number
  /** Asked after every slice, which is half a millisecond of the worst text. */
  readonly isTimeUp: () => boolean
}

/** `isOver`: the texts have more than `tokensMax` tokens together, and `counts` holds what was counted until then. */
export interface CountedTexts {
  readonly counts: readonly number[]
  readonly isOver: boolean
}

/** Undefined when time was up first. */
export function countTokens(
  tokenizer: Pick<Tokenizer, 'encode'>,
  texts: readonly string[],
  { tokensMax, isTimeUp }: CountLimits,
): CountedTexts | undefined {
  const counts: number[] = []
  let total = 0
  for (const text of texts) {
    let count = 0
    for (const slice of slicesOf(text)) {
      count += tokenizer.encode(slice).length
      if (total + count > tokensMax) return { counts: [...counts, count], isOver: true }
      if (isTimeUp()) return undefined
    }
    counts.push(count)
    total += count
  }
  return { counts, isOver: false }
}
