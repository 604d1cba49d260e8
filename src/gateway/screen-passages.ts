import type { Passage } from '../domain/corpus.ts'
import type { Tenant } from '../domain/tenant.ts'
import { type CollectDeps, screensOf } from './collect-screened.ts'
import { Placeholders } from './placeholders.ts'
import { TextScreen } from './screen-text.ts'

/**
 * Passages that a client reads itself, as the tenant's policy for answers wants them: documents rest as they were
 * uploaded. Values are gone, because nobody is there to give them back; a passage with something that is blocked is left
 * out.
 */
export async function screenedPassages(
  rules: CollectDeps['rules'],
  { id: tenantId, screening: terms }: Tenant,
  passages: readonly Passage[],
): Promise<readonly Passage[]> {
  if (terms === undefined) return passages
  const { finderOf, names, salt } = screensOf(rules)
  const placeholders = new Placeholders({ isReversible: false, secret: salt, tenantId, conversation: () => '' })
  const finder = finderOf(terms, 'output')
  const screen = new TextScreen({ terms, finder, names, placeholders, direction: 'output' })
  const screened: Passage[] = []
  for (const passage of passages) {
    const text = await screen.rewriteInTurns(passage.text)
    const source = await screen.rewriteInTurns(passage.source)
    if (text !== undefined && source !== undefined) screened.push({ ...passage, text, source })
  }
  return screened
}
