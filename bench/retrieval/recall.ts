/**
 * Does the search find what answers the question?
 *
 * PubMedQA: a thousand abstracts, each with the question that it answers. The abstracts become one corpus; each question
 * must find its own abstract as the first, or among the first five, documents.
 *
 *   node bench/retrieval/recall.ts pubmedqa-1000.json [folder for the store; in memory if absent]
 */
import { abstracts, argument, indexAll, openRetrieval, TENANT } from './rig.ts'

const { drafts, questions } = abstracts(argument(0, 'the question set, pubmedqa-1000.json'))
const retrieval = await openRetrieval(process.argv[3] ?? 'memory:')
const corpus = await indexAll(retrieval, 'abstracts', drafts)

const depths = [1, 2, 5, 10]
const found = new Map(depths.map((depth) => [depth, 0]))
const misses: string[] = []
for (const { text, document } of questions) {
  const passages = await retrieval.corpora.search(TENANT, corpus.id, { query: text, passagesMax: 30 })
  const order = [...new Set(passages.map((passage) => passage.source))]
  const rank = order.indexOf(document)
  for (const depth of depths) if (rank >= 0 && rank < depth) found.set(depth, (found.get(depth) ?? 0) + 1)
  if (rank !== 0) misses.push(`${rank < 0 ? '-' : rank + 1}: ${text}`)
}
for (const [depth, count] of found) console.log(`recall@${depth}  ${(count / questions.length).toFixed(3)}`)
if (process.argv.includes('--misses')) console.log(misses.join('\n'))
await retrieval.close()
process.exit(0)
