import type { LabelledText } from './sources.ts'

/** Documents that each attack is hidden in: enough that no single document decides. */
const DOCUMENTS_PER_ATTACK = 6

/**
 * Attacks inside documents. The model of passages takes the largest margin of all sentences, so a document with an
 * attack in it has the larger margin of the two: nothing needs to be scored again. Text attacks go into mail, news, pages
 * and tables, code attacks into code.
 */
export function hideInDocuments(
  margins: ReadonlyMap<LabelledText, number>,
  kind: 'text' | 'code',
  isAttack: (text: LabelledText) => boolean,
): { readonly hidden: number[]; readonly plain: number[] } {
  const isHost = ({ isPositive, source }: LabelledText): boolean =>
    !isPositive && (kind === 'code' ? source === 'own-code' : /mail|news|page|table/.test(source))
  const plain = [...margins].filter(([text]) => isHost(text)).map(([, margin]) => margin)
  const attacks = [...margins].filter(([text]) => isAttack(text)).map(([, margin]) => margin)
  // Seven is prime to most counts: the documents change from attack to attack.
  const hidden = attacks.flatMap((margin, at) =>
    Array.from({ length: DOCUMENTS_PER_ATTACK }, (_, copy) =>
      Math.max(margin, plain[((at * DOCUMENTS_PER_ATTACK + copy) * 7) % plain.length] as number),
    ),
  )
  return { hidden, plain }
}
