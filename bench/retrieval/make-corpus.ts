/**
 * How long does it take to index so many passages with nothing but what is built in?
 *
 * Keeps the store in a folder, for `search.ts` to search; a second run finds everything done, and one that was stopped
 * goes on where it was.
 *
 *   node bench/retrieval/make-corpus.ts pubmedqa-1000.json FOLDER [passages: 10000]
 */
import { argument, indexAll, openRetrieval, paragraphs } from './rig.ts'

const drafts = paragraphs(argument(0, 'the texts, pubmedqa-1000.json'), Number(process.argv[4] ?? 10_000))
const retrieval = await openRetrieval(argument(1, 'a folder for the store'))
await indexAll(retrieval, 'paragraphs', drafts)
await retrieval.close()
process.exit(0)
