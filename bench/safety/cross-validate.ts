import { type FitTerms, fitModel, marginOf, type Sample } from './fit.ts'

export const FOLDS = 5

/** FNV-1a of the group: the same fold on every machine, whatever the order of the texts. */
export function foldOf(group: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < group.length; at++) hash = Math.imul(hash ^ group.charCodeAt(at), 0x01000193)
  return ((hash ^ (hash >>> 15)) >>> 0) % FOLDS
}

/** Margins of texts that the model which scored them has not seen, nor any of their group. */
export function crossValidate<T extends Sample>(
  texts: readonly T[],
  terms: FitTerms,
  folds: readonly number[] = Array.from({ length: FOLDS }, (_, fold) => fold),
): Map<T, number> {
  const margins = new Map<T, number>()
  for (const fold of folds) {
    const model = fitModel(
      texts.filter(({ group }) => foldOf(group) !== fold),
      terms,
    )
    for (const text of texts) if (foldOf(text.group) === fold) margins.set(text, marginOf(model, text.text))
  }
  return margins
}

/**
 * Margins of one or more whole sources, by a model that has seen neither them nor a near-duplicate, and of the harmless
 * texts of one fold, which it has not seen either.
 */
export function leaveOut<T extends Sample>(
  texts: readonly T[],
  terms: FitTerms,
  sources: readonly string[],
  fold = 1,
): Map<T, number> {
  const left = new Set(texts.filter(({ source }) => sources.includes(source)).map(({ group }) => group))
  const isLeft = (text: T): boolean => left.has(text.group) || (!text.isPositive && foldOf(text.group) === fold)
  const model = fitModel(
    texts.filter((text) => !isLeft(text)),
    terms,
  )
  return new Map(texts.filter((text) => isLeft(text)).map((text) => [text, marginOf(model, text.text)]))
}
