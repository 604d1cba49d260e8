import type { GuardTerms } from '../domain/screening.ts'

/**
 * What a guard model answered, read strictly: "safe", "unsafe" with categories on the next line (as Llama Guard does), a
 * JSON object of the same meaning, or the results of a moderations endpoint. Anything else says nothing: a model that
 * explains itself, greets or was talked into something has not judged.
 *
 * Categories come from a model that has read a client's text, so only names that look like names are told.
 */
export type GuardVerdict =
  | { readonly kind: 'safe' | 'unreadable' }
  | { readonly kind: 'unsafe'; readonly categories: readonly string[] }

const UNREADABLE: GuardVerdict = { kind: 'unreadable' }
const SAFE: GuardVerdict = { kind: 'safe' }

export function readGuardVerdict(route: GuardTerms['route'], answer: string): GuardVerdict {
  const text = answer.trim()
  if (route === 'moderations') return readResults(parsed(text))
  if (text.startsWith('{')) return readObject(parsed(text))
  return readWords(text)
}

/** `safe`, or `unsafe` and at most one line of categories. A final full stop is forgiven. */
function readWords(text: string): GuardVerdict {
  const match = /^(safe|unsafe)\.?(?:\s*\n\s*([A-Za-z0-9_/, -]{1,200}))?$/i.exec(text)
  const [, word, list] = match ?? []
  if (word === undefined) return UNREADABLE
  if (word.toLowerCase() === 'safe') return list === undefined ? SAFE : UNREADABLE
  return unsafe(list?.split(',') ?? [])
}

function readObject(value: unknown): GuardVerdict {
  if (!isRecord(value)) return UNREADABLE
  const { safe, unsafe: isUnsafe, flagged } = value
  const said = [typeof safe === 'boolean' ? !safe : safe, isUnsafe, flagged].filter((one) => one !== undefined)
  // Two words that contradict each other say nothing.
  if (said.length === 0 || said.some((one) => typeof one !== 'boolean') || new Set(said).size > 1) return UNREADABLE
  return said[0] === true ? unsafe(categoriesOf(value['categories'])) : SAFE
}

/** One result for each input: one that is flagged is enough, and one that cannot be read spoils all. */
function readResults(value: unknown): GuardVerdict {
  const results = isRecord(value) ? value['results'] : undefined
  if (!Array.isArray(results) || results.length === 0) return UNREADABLE
  const verdicts = results.map(readObject)
  if (verdicts.some(({ kind }) => kind === 'unreadable')) return UNREADABLE
  const found = verdicts.flatMap((verdict) => (verdict.kind === 'unsafe' ? verdict.categories : []))
  return found.length === 0 ? SAFE : { kind: 'unsafe', categories: [...new Set(found)] }
}

/** A list of names, or an object with a boolean for each name. */
function categoriesOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.filter((name) => typeof name === 'string')
  return isRecord(value) ? Object.keys(value).filter((name) => value[name] === true) : []
}

function unsafe(names: readonly string[]): GuardVerdict {
  const categories = names.map((name) => name.trim().toLowerCase().replaceAll(' ', '-'))
  const known = [...new Set(categories.filter((name) => /^[a-z][a-z0-9/_-]{0,39}$/.test(name)))]
  return { kind: 'unsafe', categories: known.length === 0 ? ['unsafe'] : known }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
