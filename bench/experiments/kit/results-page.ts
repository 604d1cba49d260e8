import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { headline } from './headline.ts'
import { renderMarkdown } from './render.ts'
import { RESULTS_FOLDER, type Result } from './result.ts'

/** docs/results.md from what is stored under bench/results/. Other benches store there too; theirs have no verdict. */
export const PAGE_PATH = join(import.meta.dirname, '../../../docs/results.md')

/** As a reader wants them: fairness, overload, then the parts. */
const ORDER = [
  'vtc',
  'overload',
  'unseen',
  'unseen-chosen',
  'unseen-confirmed',
  'sheddable',
  'prefix-routing',
  'chunked-prefill',
  'static-batching',
  'ladder',
  'live-virtual',
  'cells',
  'internet-scale',
  'shared-prompts',
]

export function storedResults(): Result[] {
  const place = ({ name }: Result): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)
  return readdirSync(RESULTS_FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => JSON.parse(readFileSync(join(RESULTS_FOLDER, file), 'utf8')) as Result)
    .filter((result) => Array.isArray(result.verdict))
    .sort((a, b) => place(a) - place(b) || a.name.localeCompare(b.name))
}

export function resultsPage(): string {
  const results = storedResults()
  const sections = results.map((result) => `## ${result.title}\n\n${renderMarkdown(result)}`)
  return `${INTRODUCTION}\n## Numbers to beat\n\n${headline(results)}\n\n${OUTSIDE}\n\n${sections.join('\n')}`
}

/** The same table between two marks of the README; what stands around it is people's. */
export const README_PATH = join(import.meta.dirname, '../../../README.md')
const BLOCK = /(<!-- results: made by [^\n]*-->\n)[\s\S]*?(<!-- end of results -->)/

export function readmeWithResults(): string {
  const readme = readFileSync(README_PATH, 'utf8')
  if (!BLOCK.test(readme)) throw new Error('README.md has lost the marks between which the results stand')
  return readme.replace(BLOCK, (_, begin: string, end: string) => `${begin}\n${headline(storedResults())}\n\n${end}`)
}

export function writeResultsPage(): void {
  writeFileSync(PAGE_PATH, resultsPage())
  writeFileSync(README_PATH, readmeWithResults())
}

/** What no simulator can show. */
const OUTSIDE = `Requests per CPU-second, added latency and the time of a scheduling decision are measured on live processes:
[bench/results/gateway-overhead.md](../bench/results/gateway-overhead.md), \`bench/load\` and \`bench/micro\`. How near the
simulated engine is to a real GPU is in [architecture/engine.md](architecture/engine.md) and below.`

const INTRODUCTION = `# Results

What the experiments of \`bench/experiments/\` found, each with its command, seeds, date and commit. This page is made
from \`bench/results/\` by \`node bench/experiments/write-results-page.ts\`, and by every run with \`--record\`; a test
checks that they agree. Figures marked *published* are other people's, on their machines; everything else was simulated
here, all rows of one table in the same engine on the same requests. A run repeats exactly for a seed.
`
