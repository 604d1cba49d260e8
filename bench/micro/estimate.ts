import { globSync, readFileSync } from 'node:fs'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { Rng } from '../../src/base/rng.ts'
import { estimateTokens } from '../../src/policy/planning/estimate.ts'
import { TEXTS } from '../../test/support/texts.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: a prompt's tokens are estimated in at most 1 µs per kilobyte, and in kilobyte pieces the estimate is within
 * 10 % of the o200k tokenizer on average, for prose, code and JSON. None of the texts was used for the fit: they are
 * this repository's own. `characters ÷ 4` and exact counting are measured beside it.
 */
const PIECE_CHARS = 1_024

const read = (pattern: string): string =>
  globSync(pattern)
    .sort()
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n')

const KINDS: Readonly<Record<string, string>> = {
  prose: read('{README,CONTRIBUTING}.md') + read('docs/**/*.md') + read('LICENSE'),
  code: read('src/policy/**/*.ts'),
  json: readFileSync('package-lock.json', 'utf8').slice(0, 60_000),
}

/** Each a string of its own, as a parsed body's are, not a view of a longer one. */
function pieces(text: string): string[] {
  const all: string[] = []
  for (let i = 0; i + PIECE_CHARS <= text.length; i += PIECE_CHARS) {
    all.push(JSON.parse(JSON.stringify(text.slice(i, i + PIECE_CHARS).toWellFormed())))
  }
  return all
}

function errorsOf(texts: readonly string[], count: (text: string) => number): { mean: number; absolute: number } {
  let mean = 0
  let absolute = 0
  for (const text of texts) {
    const exact = encode(text).length
    const error = (count(text) - exact) / exact
    mean += error / texts.length
    absolute += Math.abs(error) / texts.length
  }
  return { mean: 100 * mean, absolute: 100 * absolute }
}

/** This thread's own CPU time, best of nine rounds: what the neighbours on the machine do is not our cost. */
function usPerCall(texts: readonly string[], count: (text: string) => number, calls: number): number {
  let sum = 0
  let bestUs = Number.POSITIVE_INFINITY
  for (let round = 0; round < 9; round++) {
    const from = process.threadCpuUsage()
    for (let i = 0; i < calls; i++) sum += count(texts[i % texts.length] as string)
    const { user, system } = process.threadCpuUsage(from)
    bestUs = Math.min(bestUs, (user + system) / calls)
  }
  return sum < 0 ? 0 : bestUs
}

const sampling = Rng.stream(1, 'prompt-sampling')
const estimate = (text: string): number => estimateTokens(text, sampling)

const findings: Finding[] = []
for (const [kind, text] of Object.entries(KINDS)) {
  const texts = pieces(text)
  const own = errorsOf(texts, estimate)
  findings.push({ name: `${kind}, mean absolute error`, value: own.absolute, unit: '%', below: 10 })
  findings.push({ name: `${kind}, mean error`, value: own.mean, unit: '%' })
  findings.push({
    name: `${kind}, mean absolute error of characters ÷ 4`,
    value: errorsOf(texts, (t) => t.length / 4).absolute,
    unit: '%',
  })
}
const short = Object.values(TEXTS)
findings.push({
  name: 'a few lines in eleven scripts, absolute error',
  value: errorsOf(short, estimate).absolute,
  unit: '%',
})

const chat = pieces(KINDS['prose'] as string)
const long = [(KINDS['code'] as string).repeat(4).slice(0, 1_000_000)]
const wide = [Object.values(TEXTS).join('\n').repeat(2).slice(0, 1_024)]
findings.push({ name: '1 kB of prose', value: usPerCall(chat, estimate, 100_000), unit: 'µs', below: 1 })
findings.push({ name: '1 kB of mixed scripts', value: usPerCall(wide, estimate, 100_000), unit: 'µs', below: 1 })
findings.push({ name: `${long[0]?.length} characters`, value: usPerCall(long, estimate, 10_000), unit: 'µs' })
findings.push({ name: '1 kB of prose, exactly', value: usPerCall(chat, (t) => encode(t).length, 1_000), unit: 'µs' })
tell('estimate: 1 µs per kilobyte, within 10 %', findings)
