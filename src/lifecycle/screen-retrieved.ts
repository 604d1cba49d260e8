import type { Passage } from '../domain/corpus.ts'
import type { Screening } from '../domain/screening.ts'
import type { Retrieved } from './retrieval-ports.ts'

/**
 * Passages on their way into a prompt, as the request's own text was: documents rest as they were uploaded, and are
 * rewritten when they are read (law L14). A passage with something that the policy blocks is left out; the request goes
 * on without it, because its client did not write it.
 */
export async function screenRetrieved(screening: Screening, retrieved: Retrieved): Promise<Retrieved> {
  const { rewriter } = screening
  if (rewriter === undefined || retrieved.passages.length === 0) return retrieved
  let isChanged = false
  const passages: Passage[] = []
  for (const passage of retrieved.passages) {
    const text = await rewriter.rewriteInTurns(passage.text)
    const source = await rewriter.rewriteInTurns(passage.source)
    isChanged ||= text !== passage.text || source !== passage.source
    if (text !== undefined && source !== undefined) passages.push({ ...passage, text, source })
  }
  return isChanged ? { ...retrieved, passages } : retrieved
}
