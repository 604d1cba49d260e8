import type { TSchema } from 'typebox'
import type { SchemaNode } from '../base/schema.ts'
import { nearest } from './nearest.ts'
import { redactedUrl } from './redact.ts'
import { KEY_HASH_PATTERN } from './schema-tenants.ts'

/**
 * Explains what is wrong with a value. The validator decides whether a configuration is valid; this file says why it is
 * not. It walks the part of JSON schema that our schema uses, and enters only the branch of a union that `kind` names,
 * where a validator would complain about all branches.
 */

/** The place of a value: keys and indexes from the root. */
export type Path = readonly (string | number)[]

export interface Problem {
  readonly path: Path
  /** What is wrong and what to do, without the place, which the caller adds. */
  readonly text: string
  /** The setting itself should not be there: the error points to its name, not its value. */
  readonly isAboutKey?: boolean
}

export const asNode = (schema: TSchema): SchemaNode => schema as SchemaNode

export function explain(node: SchemaNode, value: unknown, path: Path = []): Problem[] {
  if (node.anyOf !== undefined) return explainUnion(node.anyOf, value, path)
  if (node.enum !== undefined) return node.enum.includes(value) ? [] : [wrongChoice(node.enum, value, path)]
  if (node.const !== undefined) return value === node.const ? [] : [wrongChoice([node.const], value, path)]
  switch (node.type) {
    case undefined:
      return []
    case 'object':
      return explainObject(node, value, path)
    case 'array':
      return explainArray(node, value, path)
    case 'string':
      return explainString(node, value, path)
    case 'integer':
    case 'number':
      return explainNumber(node, value, path)
    default:
      return typeof value === node.type ? [] : [{ path, text: `is ${show(value)}. Set it to a ${node.type}` }]
  }
}

function explainUnion(branches: readonly SchemaNode[], value: unknown, path: Path): Problem[] {
  const kinds = branches.flatMap((branch) => branch.properties?.['kind']?.const ?? [])
  if (kinds.length === branches.length) {
    if (!isObject(value))
      return [{ path, text: `is ${show(value)}. Set it to a block with "kind: ${kinds.join('" or "kind: ')}"` }]
    const branch = branches[kinds.indexOf(value['kind'] as string)]
    if (branch !== undefined) return explain(branch, value, path)
    if (value['kind'] === undefined) return [{ path, text: `has no "kind". Add "kind: ${kinds.join('" or "kind: ')}"` }]
    return [wrongChoice(kinds, value['kind'], [...path, 'kind'])]
  }
  if (branches.some((candidate) => explain(candidate, value, path).length === 0)) return []
  const branch = branches.find((candidate) => (candidate.type === 'array') === Array.isArray(value))
  return branch === undefined ? [{ path, text: `is ${show(value)}, which it cannot be` }] : explain(branch, value, path)
}

function explainObject(node: SchemaNode, value: unknown, path: Path): Problem[] {
  if (!isObject(value))
    return [{ path, text: `is ${show(value)}. Write it as a block of settings ("name: value" lines)` }]
  const problems: Problem[] = []
  const properties = node.properties ?? {}
  const others = Object.values(node.patternProperties ?? {})[0]
  for (const [key, child] of Object.entries(value)) {
    const known = properties[key] ?? others
    if (known === undefined) {
      if (node.additionalProperties !== true) problems.push(unknownKey(key, properties, [...path, key]))
    } else if (child !== undefined) problems.push(...explain(known, child, [...path, key]))
  }
  for (const key of node.required ?? []) {
    // A default is filled in only where the rest is valid, so a missing default is not an error of the user.
    if (value[key] !== undefined || properties[key]?.default !== undefined) continue
    if (key === 'hash' && problems.some((problem) => problem.text === PLAIN_KEY)) continue
    const meaning = properties[key]?.description
    problems.push({ path, text: `lacks "${key}". Add it${meaning === undefined ? '' : ` (${lowerFirst(meaning)})`}` })
  }
  return problems
}

function unknownKey(key: string, properties: Readonly<Record<string, SchemaNode>>, path: Path): Problem {
  if ('hash' in properties && /^(key|secret|token|value|apiKey)$/i.test(key))
    return { path, text: PLAIN_KEY, isAboutKey: true }
  const guess = nearest(key, Object.keys(properties))
  const advice =
    guess === undefined ? `Remove it; known here: ${Object.keys(properties).join(', ')}` : `Did you mean "${guess}"?`
  return { path, text: `is not a setting. ${advice}`, isAboutKey: true }
}

function explainArray(node: SchemaNode, value: unknown, path: Path): Problem[] {
  if (!Array.isArray(value)) return [{ path, text: `is ${show(value)}. Write it as a list ("- " lines)` }]
  const problems: Problem[] = []
  if (value.length < (node.minItems ?? 0)) problems.push({ path, text: `is too short. Give at least ${node.minItems}` })
  if (value.length > (node.maxItems ?? Infinity))
    problems.push({ path, text: `is too long. Give at most ${node.maxItems}` })
  if (node.uniqueItems && new Set(value).size < value.length)
    problems.push({ path, text: 'repeats itself. Give each once' })
  value.forEach((child, index) => {
    // A tuple has a schema for each item.
    const item = Array.isArray(node.items) ? (node.items[index] as SchemaNode | undefined) : node.items
    if (item === undefined) return
    // `keys: [sk-…]`: the secret itself was written into the file.
    if (typeof child === 'string' && item.properties?.['hash'] !== undefined)
      problems.push({ path: [...path, index], text: PLAIN_KEY })
    else problems.push(...explain(item, child, [...path, index]))
  })
  return problems
}

/** Does not show the value, which may be a secret. */
const PLAIN_KEY =
  'is a plain key. Keys are kept as hashes only: run "spillway keys create --tenant ID" and paste what it prints'

function explainString(node: SchemaNode, value: unknown, path: Path): Problem[] {
  if (node.pattern === KEY_HASH_PATTERN && (typeof value !== 'string' || !new RegExp(KEY_HASH_PATTERN).test(value))) {
    return [{ path, text: PLAIN_KEY.replace('is a plain key', 'is not a hash ("sha256:" and 64 hexadecimal digits)') }]
  }
  if (typeof value !== 'string')
    return [{ path, text: `is ${show(value)}. Set it to text; put it in quotes if it looks like a number` }]
  if (value === '' && (node.minLength ?? 0) > 0) return [{ path, text: 'is empty. Set it, or remove it' }]
  // The value is not shown: what must have a certain length is usually a secret.
  if (value.length < (node.minLength ?? 0))
    return [{ path, text: `is too short: ${value.length} of at least ${node.minLength} characters. Lengthen it` }]
  if (value.length > (node.maxLength ?? Infinity))
    return [{ path, text: `is longer than ${node.maxLength} characters. Shorten it` }]
  if (node.pattern !== undefined && !new RegExp(node.pattern).test(value)) {
    // A database's address may have its password in it.
    return [{ path, text: `is ${show(redactedUrl(value))}. ${patternAdvice(node.pattern)}` }]
  }
  return []
}

function patternAdvice(pattern: string): string {
  if (pattern.startsWith('^https?')) return 'Set it to an address such as http://gpu-1:8000/v1'
  if (pattern.startsWith('^postgres')) return 'Set it to an address such as postgres://user:password@host/name'
  if (pattern.startsWith('^rediss?')) return 'Set it to an address such as redis://host:6379'
  if (pattern.startsWith('^\\d{4}-')) return 'Set it to a day such as 2026-03-01, or an hour such as 2026-03-01T12:00Z'
  if (pattern.startsWith('^(/')) return 'Set it to a path such as /llm: a slash in front, none at the end'
  if (pattern.includes('://')) return 'Set it to an origin such as https://app.example, without a path, or to *'
  if (pattern.startsWith('^(\\*|[A-Za-z0-9-]')) return 'Set it to the name of a header, or to *'
  return 'Use letters, digits and . _ : / - only'
}

function explainNumber(node: SchemaNode, value: unknown, path: Path): Problem[] {
  const isRightKind = node.type === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)
  const isInside =
    isRightKind &&
    (value as number) >= (node.minimum ?? -Infinity) &&
    (value as number) <= (node.maximum ?? Infinity) &&
    (value as number) > (node.exclusiveMinimum ?? -Infinity) &&
    (value as number) < (node.exclusiveMaximum ?? Infinity)
  if (isInside) return []
  return [
    { path, text: `is ${show(value)}. Set it to a ${node.type === 'integer' ? 'whole ' : ''}number ${boundsOf(node)}` },
  ]
}

function boundsOf(node: SchemaNode): string {
  const low = node.exclusiveMinimum !== undefined ? `above ${node.exclusiveMinimum}` : `from ${node.minimum ?? 'any'}`
  const high = node.exclusiveMaximum !== undefined ? `below ${node.exclusiveMaximum}` : `up to ${node.maximum ?? 'any'}`
  return `${low} ${node.exclusiveMinimum !== undefined ? 'and ' : ''}${high}`
}

function wrongChoice(choices: readonly unknown[], value: unknown, path: Path): Problem {
  const guess = typeof value === 'string' ? nearest(value, choices.map(String)) : undefined
  const advice =
    guess === undefined ? `Set it to ${choices.join(', ').replace(/, ([^,]*)$/, ' or $1')}` : `Did you mean "${guess}"?`
  return { path, text: `is ${show(value)}. ${advice}` }
}

/** The value as written, cut short. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a block'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const lowerFirst = (text: string) =>
  text.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase()).replace(/\.$/, '')
