/**
 * How many names and addresses does the tagger find in sentences that it was not trained on, and how many clean texts
 * does it alter?
 *
 *   node bench/safety/names.ts FOLDER [--misses]
 *
 * FOLDER holds `pii-presidio-v2.json` and clean texts. The measure is on odd templates only; training reads even ones.
 * *Strict* recall: no word of the value is left.
 */
import { loadNameTagger } from '../../src/safety/names/fs-name-tagger.ts'
import { loadNameTexts } from './name-texts.ts'

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('usage: node bench/safety/names.ts FOLDER [--misses]')
const showsMisses = process.argv.includes('--misses')
const tagger = loadNameTagger()
const { test, clean } = loadNameTexts(folder)

const wordsIn = (text: string): RegExpStringIterator<RegExpExecArray> => text.matchAll(/[\p{L}\p{N}]+/gu)
const tally = new Map<string, { values: number; gone: number }>()
const places = { found: 0, right: 0 }

for (const { text, places: wanted } of test) {
  const spans = tagger.find(text)
  for (const { type, start, end } of wanted) {
    const count = tally.get(type) ?? { values: 0, gone: 0 }
    const isGone = [...wordsIn(text.slice(start, end))].every(({ 0: word, index }) =>
      spans.some((span) => span.start <= start + index && span.end >= start + index + word.length),
    )
    tally.set(type, { values: count.values + 1, gone: count.gone + (isGone ? 1 : 0) })
    if (showsMisses && !isGone) console.log(`missed ${type}: ${JSON.stringify(text.slice(start, end))} in ${text}`)
  }
  for (const span of spans) {
    places.found++
    if (wanted.some(({ start, end }) => span.start < end && span.end > start)) places.right++
  }
}
const percent = (part: number, whole: number): string => `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`
console.log(`${test.length} texts of unseen templates`)
for (const [type, { values, gone }] of tally)
  console.log(`strict recall, ${type}: ${gone} of ${values} (${percent(gone, values)})`)
console.log(`findings that touch a name or an address: ${places.right} of ${places.found}`)
for (const [name, texts] of Object.entries(clean)) {
  const altered = texts.filter((text) => tagger.find(text).length > 0)
  console.log(`altered, ${name}: ${altered.length} of ${texts.length} (${percent(altered.length, texts.length)})`)
  if (showsMisses)
    for (const text of altered.slice(0, 40))
      console.log(
        `  ${tagger
          .find(text)
          .map(({ start, end }) => JSON.stringify(text.slice(start, end)))
          .join(' ')}`,
      )
}
const prose = test.map(({ text }) => text).join('\n')
for (let i = 0; i < 5; i++) tagger.find(prose)
const startedAt = process.cpuUsage().user
for (let i = 0; i < 10; i++) tagger.find(prose)
const kilobytes = (10 * prose.length) / 1_000
console.log(`${((process.cpuUsage().user - startedAt) / kilobytes).toFixed(0)} µs of CPU per kB`)
