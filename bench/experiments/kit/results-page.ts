import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderMarkdown } from './render.ts'
import { RESULTS_FOLDER, type Result } from './result.ts'

/** docs/results.md from what is stored under bench/results/. Other benches store there too; theirs have no verdict. */
export const PAGE_PATH = join(import.meta.dirname, '../../../docs/results.md')

/** As a reader wants them: fairness, overload, then the parts. */
const ORDER = ['vtc', 'overload', 'sheddable', 'prefix-routing', 'chunked-prefill', 'ladder']

export function storedResults(): Result[] {
  const place = ({ name }: Result): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)
  return readdirSync(RESULTS_FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => JSON.parse(readFileSync(join(RESULTS_FOLDER, file), 'utf8')) as Result)
    .filter((result) => Array.isArray(result.verdict))
    .sort((a, b) => place(a) - place(b) || a.name.localeCompare(b.name))
}

export function resultsPage(): string {
  const sections = storedResults().map((result) => `## ${result.title}\n\n${renderMarkdown(result)}`)
  return `${INTRODUCTION}\n${sections.join('\n')}`
}

export function writeResultsPage(): void {
  writeFileSync(PAGE_PATH, resultsPage())
}

const INTRODUCTION = `# Results

What the experiments of \`bench/experiments/\` found, each with its command, seeds, date and commit. This page is made
from \`bench/results/\` by \`node bench/experiments/write-results-page.ts\`, and by every run with \`--record\`; a test
checks that they agree. Figures marked *published* are other people's, on their machines; everything else was simulated
here, all rows of one table in the same engine on the same requests. A run repeats exactly for a seed.
`
