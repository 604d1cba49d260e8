/**
 * What does it cost to index this many abstracts with nothing but what is built in: CPU-seconds, memory, time?
 *
 * The abstracts are made here, from a seed: about 1,400 characters each in three paragraphs, as PubMed's are. The store
 * is in memory. CPU time and memory are those of the whole process, threads included; memory is looked at ten times a
 * second. "before" is what the process takes with its store open and nothing to index.
 *
 *   node bench/retrieval/index-cost.ts [abstracts: 200]
 */
import { setInterval } from 'node:timers'
import { Rng } from '../../src/base/rng.ts'
import type { DocumentDraft } from '../../src/lifecycle/retrieval-ports.ts'
import { indexAll, openRetrieval, TENANT } from './rig.ts'

const count = Number(process.argv[2] ?? 200)

const SUBJECTS = 'patients|children|nurses|older adults|surgeons|mice|twins|smokers|runners|infants'.split('|')
const VERBS = 'were treated with|were compared by|reported less|were screened for|had higher rates of'.split('|')
const OBJECTS =
  'metformin|early physiotherapy|postoperative pain|sleep disturbance|arterial stiffness|vitamin D deficiency|depressive symptoms|bone density|hospital readmission|mitochondrial activity'.split(
    '|',
  )
const ENDS = 'after twelve weeks|in a randomised trial|at follow-up|compared with controls|across three centres'.split(
  '|',
)

function abstracts(many: number): DocumentDraft[] {
  const rng = Rng.stream(1, 'abstracts')
  const one = (list: readonly string[]): string => list[rng.below(list.length)] as string
  const sentence = (): string =>
    `The ${one(SUBJECTS)} ${one(VERBS)} ${one(OBJECTS)} ${one(ENDS)} (${rng.below(900) + 10} of ${rng.below(9_000) + 1_000}).`
  const paragraph = (): string => Array.from({ length: 5 }, sentence).join(' ')
  return Array.from({ length: many }, (_, i) => ({
    name: `abstract-${i}`,
    text: [paragraph(), paragraph(), paragraph()].join('\n\n'),
    attributes: {},
  }))
}

const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
const cpuS = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const drafts = abstracts(count)
const retrieval = await openRetrieval('memory:')
// The first statement opens the store, which is not what indexing costs.
await retrieval.corpora.listCorpora(TENANT, { limit: 1, order: 'asc' })
const before = { cpuS: cpuS(), bytes: process.memoryUsage.rss() }
let peakBytes = before.bytes
const looking = setInterval(() => {
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
}, 100)
const startedAt = performance.now()
const { passageCount } = await indexAll(retrieval, 'abstracts', drafts)
const tookS = (performance.now() - startedAt) / 1_000
clearInterval(looking)
const usedS = cpuS() - before.cpuS
const characters = drafts.reduce((sum, { text }) => sum + text.length, 0)
console.log(
  `${count} abstracts, ${characters} characters, ${passageCount} passages: ${tookS.toFixed(1)} s, ` +
    `${usedS.toFixed(1)} CPU-seconds (${((1_000 * usedS) / passageCount).toFixed(0)} ms a passage), ` +
    `${(passageCount / tookS).toFixed(1)} passages a second, ` +
    `RSS ${mib(before.bytes)} MiB before, ${mib(peakBytes)} MiB at most, ${mib(process.memoryUsage.rss())} MiB after`,
)
await retrieval.close()
process.exit(0)
