import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expandTemplates, makeDraw } from './expand.ts'
import { CLEAN_KINDS, makeClean } from './made-clean.ts'
import { EntityMaker } from './made-entities.ts'

/**
 * Texts for the tagger of names: Presidio's, of which those of odd templates are kept for the measure; frames of ours
 * (`texts/names.txt`) filled with values of the even ones; and clean texts in two halves that share no line.
 */
export interface NamedPlace {
  readonly kind: 'person' | 'address'
  /** As the data calls it. */
  readonly type: string
  readonly start: number
  readonly end: number
}

export interface NamedText {
  readonly text: string
  readonly places: readonly NamedPlace[]
}

export interface NameTexts {
  readonly train: readonly NamedText[]
  readonly test: readonly NamedText[]
  readonly clean: Readonly<Record<string, readonly string[]>>
}

interface PresidioText {
  readonly full_text: string
  readonly template_id: number
  readonly spans: ReadonlyArray<{
    readonly entity_type: string
    readonly entity_value: string
    readonly start_position: number
    readonly end_position: number
  }>
}

const KINDS: Readonly<Record<string, NamedPlace['kind']>> = {
  PERSON: 'person',
  STREET_ADDRESS: 'address',
  ZIP_CODE: 'address',
}

/** Texts made of one frame of ours. */
const TEXTS_PER_FRAME = 40
const CLEAN_PER_KIND = 150
const TWEETS = 1_000

export function loadNameTexts(folder: string): NameTexts {
  const all = JSON.parse(readFileSync(join(folder, 'pii-presidio-v2.json'), 'utf8')) as PresidioText[]
  const even = all.filter(({ template_id }) => template_id % 2 === 0)
  const odd = all.filter(({ template_id }) => template_id % 2 === 1)
  const lines = (name: string): string[] => readFileSync(join(folder, name), 'utf8').trim().split('\n')
  const deepset = lines('injection-deepset.jsonl').map((line) => (JSON.parse(line) as { text: string }).text)
  const moderation = lines('moderation-openai-half.jsonl').map(
    (line) => (JSON.parse(line) as { prompt: string }).prompt,
  )
  const tweets = lines('toxicity-davidson.csv').map((line) => line.split(',').slice(6).join(','))
  const wild = JSON.parse(readFileSync(join(folder, 'jailbreaks-in-the-wild.json'), 'utf8')) as string[]
  const foreign = [
    ...deepset.filter((_, i) => i % 2 === 0),
    ...moderation.filter((_, i) => i % 2 === 0),
    ...tweets.filter((_, i) => i % 10 === 7),
    ...wild.filter((_, i) => i % 2 === 0),
  ]
  const made = (seed: number): string[] => {
    const maker = new EntityMaker(seed)
    // The kind "chat" has addresses in it.
    const kinds = CLEAN_KINDS.filter((kind) => kind !== 'chat')
    return kinds.flatMap((kind) => Array.from({ length: CLEAN_PER_KIND }, () => makeClean(maker, kind)))
  }
  const own = (file: string): string[] =>
    expandTemplates(file, readFileSync(join(import.meta.dirname, 'texts', `${file}.txt`), 'utf8'), 12).map(
      ({ text }) => text,
    )
  const negatives = [
    ...deepset.filter((_, i) => i % 2 === 0),
    ...plainParts(foreign),
    ...made(41),
    ...own('chat'),
    ...own('look-alikes'),
  ]
  return {
    train: [
      ...even.map((entry) => toNamed(entry, true)),
      ...framed(even),
      ...negatives.map((text) => ({ text, places: [] })),
    ],
    test: odd.map((entry) => toNamed(entry, false)),
    clean: {
      'Presidio, unseen templates without names, addresses, places and firms': odd
        .filter(({ spans }) => spans.every(({ entity_type }) => !NAMING.has(entity_type)))
        .map(({ full_text }) => full_text),
      'questions (deepset), the other half': deepset.filter((_, i) => i % 2 === 1),
      'made: logs, code, tables, dates': made(42),
      'moderation samples (many have names), the other half': moderation.filter((_, i) => i % 2 === 1),
      'tweets (some have names), others': tweets.filter((_, i) => i % 10 === 3).slice(0, TWEETS),
    },
  }
}

/** Negatives at most, from other people's prose. */
const PARTS_MAX = 12_000

/**
 * Lines without a word that could be a name: every word with a capital is also written small somewhere in the same
 * texts. Nobody has marked the names in these texts, and a name among the negatives would teach that it is none.
 */
function plainParts(texts: readonly string[]): string[] {
  const parts = texts.flatMap((text) => text.split(/\n+|(?<=[.!?]) /)).map((part) => part.trim())
  const small = new Map<string, number>()
  for (const part of parts)
    for (const [word] of part.matchAll(/\p{Ll}[\p{L}\p{M}]*/gu)) small.set(word, (small.get(word) ?? 0) + 1)
  const isPlain = (part: string): boolean =>
    !/@|\d{3}|RT /.test(part) &&
    [...part.matchAll(/\p{Lu}[\p{L}\p{M}]*/gu)].every(
      ([word]) => word.length === 1 || (small.get(word.toLowerCase()) ?? 0) >= 3,
    )
  return [...new Set(parts.filter((part) => part.length > 12 && part.length < 400 && isPlain(part)))].slice(
    0,
    PARTS_MAX,
  )
}

const NAMING: ReadonlySet<string> = new Set(['PERSON', 'STREET_ADDRESS', 'ZIP_CODE', 'GPE', 'ORGANIZATION', 'NRP'])

/** A town next to a street is part of the address, for training; the measure asks only for what the data calls one. */
function toNamed({ full_text: text, spans }: PresidioText, joinsTowns: boolean): NamedText {
  const sorted = [...spans].sort((a, b) => a.start_position - b.start_position)
  const isGap = (from: number, to: number): boolean => /^[\s,.>-]{0,4}$/.test(text.slice(from, to))
  const streets = sorted.filter(({ entity_type }) => KINDS[entity_type] === 'address')
  const places = sorted.flatMap(({ entity_type: type, start_position: start, end_position: end }) => {
    const isTown =
      joinsTowns &&
      type === 'GPE' &&
      streets.some((one) => isGap(end, one.start_position) || isGap(one.end_position, start))
    const kind = isTown ? 'address' : KINDS[type]
    return kind === undefined ? [] : [{ kind, type, start, end }]
  })
  return { text, places }
}

function framed(even: readonly PresidioText[]): NamedText[] {
  const valuesOf = (type: string): string[] => [
    ...new Set(
      even.flatMap(({ spans }) =>
        spans.flatMap(({ entity_type, entity_value }) => (entity_type === type ? [entity_value] : [])),
      ),
    ),
  ]
  const persons = valuesOf('PERSON')
  const pools: Readonly<Record<string, readonly string[]>> = {
    person: persons,
    given: [...new Set(persons.map((name) => name.split(' ')[0]!))],
    address: valuesOf('STREET_ADDRESS').filter((value) => /\p{L}/u.test(value) && value.length > 8),
    city: valuesOf('GPE'),
    firm: valuesOf('ORGANIZATION'),
  }
  const draw = makeDraw(77)
  const source = readFileSync(join(import.meta.dirname, 'texts', 'names.txt'), 'utf8')
  return expandTemplates('names', source, TEXTS_PER_FRAME).map(({ text }) => fill(text, pools, draw))
}

function fill(
  frame: string,
  pools: Readonly<Record<string, readonly string[]>>,
  draw: (below: number) => number,
): NamedText {
  const places: NamedPlace[] = []
  let text = ''
  for (const part of frame.split(/(\{[a-z]+\})/)) {
    const slot = part.startsWith('{') ? part.slice(1, -1) : ''
    const pool = pools[slot]
    if (pool === undefined) {
      text += part
      continue
    }
    const value = pool[draw(pool.length)]!
    const kind = slot === 'address' ? 'address' : slot === 'person' || slot === 'given' ? 'person' : undefined
    if (kind !== undefined) places.push({ kind, type: slot, start: text.length, end: text.length + value.length })
    text += value
  }
  return { text, places }
}
