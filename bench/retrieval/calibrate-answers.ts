/**
 * From which similarity on do two questions ask the same?
 *
 * Pairs of questions are made from a set (`question-pairs.ts`): the same in other words, and different though they look
 * alike; the nearest other question of the set is one of those. Both of a pair are embedded. The threshold is the lowest
 * at which at most one in a hundred of the different pairs of the first half would get a wrong answer; what it does is
 * told for the second half, with the rules of `shelf.ts` and `same-words.ts` and, to see what they are for, by similarity
 * alone.
 *
 *   node bench/retrieval/calibrate-answers.ts pubmedqa-1000.json [questions: 300] [embedder: built in | URL MODEL DIMENSIONS]
 */
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Embedder } from '../../src/lifecycle/retrieval-ports.ts'
import { hasSameWords, wordsOf } from '../../src/retrieval/answers/same-words.ts'
import { marksOf } from '../../src/retrieval/answers/shelf.ts'
import { HttpEmbedder } from '../../src/retrieval/embedders/http-embedder.ts'
import { UseLiteEmbedder } from '../../src/retrieval/embedders/live-use-lite.ts'
import { different, makePairs, type Pair } from './question-pairs.ts'
import { argument, readRecords } from './rig.ts'

const FALSE_HITS_MAX = 0.01

const stay = setInterval(() => {}, 1_000)
const count = Number(process.argv[3] ?? 300)
const questions = readRecords(argument(0, 'the question set, pubmedqa-1000.json'))
  .map(([, { QUESTION }]) => QUESTION)
  .slice(0, count)
const embedder = makeEmbedder(process.argv.slice(4))

function makeEmbedder([url, model, dimensions]: readonly string[]): Embedder {
  if (url === undefined) return new UseLiteEmbedder(new LiveClock())
  return new HttpEmbedder({
    url,
    model: model ?? '',
    dimensions: Number(dimensions),
    apiKey: undefined,
    timeoutMs: 60_000,
  })
}

const vectors = new Map<string, Float32Array>()
async function embedAll(texts: readonly string[]): Promise<void> {
  const missing = [...new Set(texts)].filter((text) => !vectors.has(text))
  for (let i = 0; i < missing.length; i += 32) {
    const part = missing.slice(i, i + 32)
    const made = await embedder.embed(part, { kind: 'question' })
    part.forEach((text, at) => void vectors.set(text, made[at] as Float32Array))
  }
}
const cosine = (a: string, b: string): number => {
  const [x, y] = [vectors.get(a) as Float32Array, vectors.get(b) as Float32Array]
  return x.reduce((sum, part, i) => sum + part * (y[i] as number), 0)
}

await embedAll(questions)
const nearest = questions.flatMap((question) => {
  const others = questions.filter((other) => other !== question)
  const best = others.reduce((a, b) => (cosine(question, b) > cosine(question, a) ? b : a))
  return different('the nearest other question', best, question) ?? []
})
const pairs = [...makePairs(questions), ...nearest]
await embedAll(pairs.flatMap(({ known, asked }) => [known, asked]))

interface Judged extends Pair {
  readonly similarity: number
  readonly isComparable: boolean
}
const judged: Judged[] = pairs.map((pair) => ({
  ...pair,
  similarity: cosine(pair.known, pair.asked),
  isComparable: marksOf(pair.known) === marksOf(pair.asked) && hasSameWords(wordsOf(pair.known), wordsOf(pair.asked)),
}))
const first = judged.filter((_, i) => i % 2 === 0)
const second = judged.filter((_, i) => i % 2 === 1)

const share = (of: readonly Judged[], isHit: (pair: Judged) => boolean): number =>
  of.length === 0 ? Number.NaN : of.filter(isHit).length / of.length
const hits =
  (threshold: number) =>
  ({ similarity, isComparable }: Judged): boolean =>
    isComparable && similarity >= threshold
const thresholds = Array.from({ length: 80 }, (_, i) => Math.round((0.6 + i * 0.005) * 1_000) / 1_000)
const unlike = first.filter(({ isSame }) => !isSame)
const chosen = thresholds.find((threshold) => share(unlike, hits(threshold)) <= FALSE_HITS_MAX) ?? 1

const percent = (value: number): string => (Number.isNaN(value) ? '' : `${(100 * value).toFixed(1)} %`)
const kinds = [...new Set(judged.map(({ kind }) => kind))]
const shown = [0.7, 0.8, 0.85, 0.9, 0.95, chosen].filter((one, i, all) => all.indexOf(one) === i).sort((a, b) => a - b)
console.log(`embedder ${embedder.name}, ${questions.length} questions, ${judged.length} pairs`)
console.log(`threshold ${chosen}: the lowest with at most ${percent(FALSE_HITS_MAX)} false hits in the first half\n`)
console.log(`| second half, answered alike at | pairs | ${shown.join(' | ')} | ${chosen} by similarity alone |`)
console.log(`|---|---|${shown.map(() => '---|').join('')}---|`)
const row = (name: string, of: readonly Judged[]): void => {
  const cells = shown.map((threshold) => percent(share(of, hits(threshold))))
  const blind = percent(share(of, ({ similarity }) => similarity >= chosen))
  console.log(`| ${name} | ${of.length} | ${cells.join(' | ')} | ${blind} |`)
}
for (const isSame of [true, false]) {
  const all = second.filter((pair) => pair.isSame === isSame)
  for (const kind of kinds) {
    const of = all.filter((pair) => pair.kind === kind)
    if (of.length > 0) row(`${isSame ? 'same' : 'different'}: ${kind}`, of)
  }
  row(isSame ? '**all the same**' : '**all different: false hits**', all)
}
clearInterval(stay)
await embedder.close()
process.exit(0)
