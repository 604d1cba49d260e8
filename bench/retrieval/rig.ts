/** What the retrieval benches share: the platform's own retrieval on an embedded store, and the question set. */
import { readFileSync } from 'node:fs'
import { makeLiveStore } from '../../src/assembly/live-store.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { Rng } from '../../src/base/rng.ts'
import { buildConfig } from '../../src/config/load.ts'
import type { Corpus } from '../../src/domain/corpus.ts'
import type { DocumentDraft } from '../../src/lifecycle/retrieval-ports.ts'
import { type LiveRetrieval, makeLiveRetrieval } from '../../src/main/live-retrieval.ts'

export const TENANT = 'bench'

export interface Question {
  readonly text: string
  readonly document: string
}

interface PubMedRecord {
  readonly QUESTION: string
  readonly CONTEXTS: readonly string[]
  readonly LONG_ANSWER: string
}

export function readRecords(path: string): ReadonlyArray<readonly [string, PubMedRecord]> {
  return Object.entries(JSON.parse(readFileSync(path, 'utf8')) as Record<string, PubMedRecord>)
}

/** One document per abstract, and the question that it answers. */
export function abstracts(path: string): { drafts: DocumentDraft[]; questions: Question[] } {
  const records = readRecords(path)
  return {
    drafts: records.map(([id, { CONTEXTS }]) => ({ name: id, text: CONTEXTS.join('\n\n'), attributes: {} })),
    questions: records.map(([id, { QUESTION }]) => ({ text: QUESTION, document: id })),
  }
}

/** As many passages as wanted, fifty to a document: real paragraphs first, then new ones made of real sentences. */
export function paragraphs(path: string, count: number): DocumentDraft[] {
  const records = readRecords(path)
  const real = records
    .flatMap(([, { CONTEXTS, LONG_ANSWER }]) => [...CONTEXTS, LONG_ANSWER])
    .map((text) => text.slice(0, 690))
  const sentences = real.flatMap((text) => text.split(/(?<=[.!?])\s+/)).filter((sentence) => sentence.length > 40)
  const rng = Rng.stream(1, 'paragraphs')
  const texts = new Set(real)
  while (texts.size < count) {
    let text = ''
    while (text.length < 300)
      text += `${text === '' ? '' : ' '}${(sentences[rng.below(sentences.length)] as string).slice(0, 300)}`
    texts.add(text.slice(0, 690).replaceAll('\n', ' '))
  }
  const wanted = [...texts].slice(0, count)
  return Array.from({ length: Math.ceil(count / 50) }, (_, i) => {
    // A heading each, so that each becomes a passage of its own.
    const text = wanted.slice(i * 50, i * 50 + 50).map((paragraph, n) => `# ${n}\n${paragraph.replaceAll('#', '')}`)
    return { name: `document-${i}`, text: text.join('\n\n'), attributes: {} }
  })
}

export async function openRetrieval(path: string, settings: Record<string, unknown> = {}): Promise<LiveRetrieval> {
  const tree = { tenants: [{ id: TENANT }], store: { path }, retrieval: settings }
  const config = buildConfig({ path: 'bench.yaml', tree, lineOf: () => undefined }, {})
  const clock = new LiveClock()
  const store = await makeLiveStore(config, clock, (problem) => console.error(problem))
  const retrieval = await makeLiveRetrieval(config, {
    clock,
    store,
    journal: { record: () => {} },
    complain: (problem) => console.error(problem),
  })
  await retrieval.warmUp()
  return {
    ...retrieval,
    async close() {
      await retrieval.close()
      await store.close()
    },
  }
}

/** Puts the documents in (those that are there already cost nothing) and waits until all are indexed. */
export async function indexAll(
  retrieval: LiveRetrieval,
  name: string,
  drafts: readonly DocumentDraft[],
): Promise<Corpus> {
  const { corpora } = retrieval
  const corpus = await corpora.createCorpus(TENANT, { name, metadata: {} }).catch(() => corpora.getCorpus(TENANT, name))
  const startedAt = performance.now()
  const seconds = (): string => ((performance.now() - startedAt) / 1_000).toFixed(1)
  for (let i = 0; i < drafts.length; i += 100) await corpora.addDocuments(TENANT, corpus.id, drafts.slice(i, i + 100))
  console.log(`${drafts.length} documents stored in ${seconds()} s`)
  for (;;) {
    const now = await corpora.getCorpus(TENANT, corpus.id)
    const { completed, failed } = now.counts
    if (completed + failed >= drafts.length) {
      console.log(`${now.passageCount} passages of ${completed} documents indexed in ${seconds()} s, ${failed} failed`)
      return now
    }
    console.log(`${seconds()} s: ${completed} of ${drafts.length} documents, ${now.passageCount} passages`)
    await new Promise((resolve) => setTimeout(resolve, 10_000))
  }
}

export function quantiles(samples: readonly number[]): string {
  const sorted = samples.toSorted((a, b) => a - b)
  const at = (q: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] as number).toFixed(2)
  return `p50 ${at(0.5)}  p95 ${at(0.95)}  p99 ${at(0.99)}  max ${at(1)} ms  (n=${sorted.length})`
}

export function argument(position: number, meaning: string): string {
  const value = process.argv[2 + position]
  if (value !== undefined) return value
  console.error(`missing argument: ${meaning}`)
  process.exit(2)
}
