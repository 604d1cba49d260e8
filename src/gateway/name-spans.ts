import type { EntitySpan, ScreeningTerms } from '../domain/screening.ts'

/** UTF-16 units that the tagger of names looks at without a pause: two milliseconds. */
export const NAME_WINDOW_LENGTH = 4_096
/** Longest name or address that a window may have cut without noticing. */
export const NAME_OVERLAP_LENGTH = 512

/** Names and addresses beside what the rules found, in order. Rules know what they see; a name never takes their place. */
export function namesBeside(
  text: string,
  ruled: readonly EntitySpan[],
  names: readonly EntitySpan[],
  { allowed }: Pick<ScreeningTerms, 'allowed'>,
): readonly EntitySpan[] {
  const kept = outsideOf(names, ruled).filter(({ start, end }) => {
    const value = text.slice(start, end)
    return HAS_WORD.test(value) && !allowed.includes(value)
  })
  if (kept.length === 0) return ruled
  return [...ruled, ...kept].sort((a, b) => a.start - b.start)
}

const HAS_WORD = /[\p{L}\p{N}]/u

/** What is left of places between others; both are sorted, and each is looked at once. */
function outsideOf(places: readonly EntitySpan[], others: readonly EntitySpan[]): EntitySpan[] {
  const left: EntitySpan[] = []
  let next = 0
  for (const place of places) {
    let { start } = place
    for (; next < others.length; next++) {
      const other = others[next] as EntitySpan
      if (other.start >= place.end) break
      if (other.start > start) left.push({ ...place, start, end: other.start })
      start = Math.max(start, other.end)
      // What goes on behind this place may cover the next one, too.
      if (other.end > place.end) break
    }
    if (start < place.end) left.push({ ...place, start })
  }
  return left
}
