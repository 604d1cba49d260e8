import type { Static, TSchema } from 'typebox'
import { assert } from './assert.ts'
import type { SchemaNode } from './schema.ts'

/**
 * Checks values against schemas, and fills in what a schema says of absent ones. A schema is turned into closures at its
 * first use, so that schemas which no request needs cost nothing. What is wrong with a value is found by
 * `schema-faults.ts`, only when the check has failed.
 *
 * Rules are those of JSON Schema, as TypeBox has them: lengths count code points, and an optional property whose value is
 * undefined is absent.
 */
type Check = (value: unknown) => boolean
type Members = Readonly<Record<string, unknown>>

export function isValid<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  return checkOf(schema as SchemaNode)(value)
}

const checks = new WeakMap<SchemaNode, Check>()

/** The compiled check of a schema; the same function at every call. */
export function checkOf(node: SchemaNode): Check {
  let check = checks.get(node)
  if (check === undefined) {
    check = compile(node)
    checks.set(node, check)
  }
  return check
}

/** Keywords that say something about a schema, not about values. */
const WORDS = new Set(['type', 'const', 'enum', 'anyOf', 'default', 'description', 'examples', 'title', 'env'])

/** Keywords beside the bounds that say something of values of one type only, and need that type beside them. */
const WORDS_OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  object: ['properties', 'patternProperties', 'additionalProperties', 'required'],
  array: ['items'],
}

function isKnownWord(word: string, type: string): boolean {
  if (WORDS.has(word) || WORDS_OF_TYPE[type]?.includes(word) === true) return true
  return BOUNDS[type]?.some((one) => one.word === word) === true
}

function compile(node: SchemaNode): Check {
  for (const word of Object.keys(node)) {
    assert(isKnownWord(word, node.type ?? ''), `schemas have no keyword ${word} for ${node.type ?? 'any type'}`)
  }
  const { anyOf } = node
  const parts: Check[] = []
  if (node.type !== undefined) parts.push(typeCheck(node.type, node))
  if ('const' in node) parts.push((value) => value === node.const)
  if (node.enum !== undefined) parts.push((value) => node.enum?.includes(value) === true)
  if (anyOf !== undefined) {
    const branches = anyOf.map(checkOf)
    parts.push((value) => branches.some((branch) => branch(value)))
  }
  const [only] = parts
  if (only === undefined) return () => true
  return parts.length === 1 ? only : (value) => parts.every((part) => part(value))
}

function typeCheck(type: string, node: SchemaNode): Check {
  if (type === 'object') return objectCheck(node)
  const isWithin = boundsCheck(type, node)
  if (type !== 'array') return (value) => isOfType(type, value) && isWithin(value as never)
  const check = node.items === undefined ? undefined : checkOf(node.items)
  return (value) =>
    Array.isArray(value) && isWithin(value as never) && (check === undefined || value.every((item) => check(item)))
}

export function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'object':
      return isMembers(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    case 'null':
      return value === null
    default:
      return typeof value === type
  }
}

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function objectCheck(node: SchemaNode): Check {
  const { required = [], properties = {}, patternProperties } = node
  const known = Object.entries(properties).map(([key, child]) => ({
    key,
    check: checkOf(child),
    isRequired: required.includes(key),
  }))
  const isClosed = node.additionalProperties === false
  const patterns = Object.entries(patternProperties ?? {}).map(
    ([pattern, child]) => [unicodePattern(pattern), checkOf(child)] as const,
  )
  const isKnown = knownKeys(node)
  const isWithin = boundsCheck('object', node)
  return (value) => {
    if (!isMembers(value) || !isWithin(value as never)) return false
    for (const key of required) if (!Object.hasOwn(value, key)) return false
    for (const { key, check, isRequired } of known) {
      const member = Object.hasOwn(value, key) ? value[key] : undefined
      if ((member !== undefined || isRequired) && !check(member)) return false
    }
    if (!isClosed && patterns.length === 0) return true
    for (const key of Object.keys(value)) {
      if (isClosed && !isKnown(key)) return false
      for (const [pattern, check] of patterns) if (pattern.test(key) && !check(value[key])) return false
    }
    return true
  }
}

/** Keys that the schema names, or that match one of its patterns. */
export function knownKeys({ properties = {}, patternProperties = {} }: SchemaNode): (key: string) => boolean {
  const patterns = Object.keys(patternProperties).map(unicodePattern)
  return (key) => Object.hasOwn(properties, key) || patterns.some((pattern) => pattern.test(key))
}

/** A keyword that bounds values of one type. */
export interface Bound {
  readonly word: keyof SchemaNode
  /** `limit` is what the schema says under the word. */
  readonly isWithin: (value: never, limit: never) => boolean
  readonly message: (limit: string) => string
}

const bound = (word: Bound['word'], isWithin: Bound['isWithin'], message: Bound['message']): Bound => ({
  word,
  isWithin,
  message,
})

const sizeOf = (value: object): number => Object.keys(value).length
const differing = (items: readonly unknown[]): number => new Set(items.map((item) => JSON.stringify(item))).size

const NUMBER_BOUNDS: readonly Bound[] = [
  bound(
    'exclusiveMinimum',
    (value: number, limit: number) => value > limit,
    (limit) => `must be > ${limit}`,
  ),
  bound(
    'exclusiveMaximum',
    (value: number, limit: number) => value < limit,
    (limit) => `must be < ${limit}`,
  ),
  bound(
    'minimum',
    (value: number, limit: number) => value >= limit,
    (limit) => `must be >= ${limit}`,
  ),
  bound(
    'maximum',
    (value: number, limit: number) => value <= limit,
    (limit) => `must be <= ${limit}`,
  ),
]

/** By type, in the order in which their faults are named. */
export const BOUNDS: Readonly<Record<string, readonly Bound[]>> = {
  object: [
    bound(
      'minProperties',
      (value: object, limit: number) => sizeOf(value) >= limit,
      (limit) => `must not have fewer than ${limit} properties`,
    ),
    bound(
      'maxProperties',
      (value: object, limit: number) => sizeOf(value) <= limit,
      (limit) => `must not have more than ${limit} properties`,
    ),
  ],
  array: [
    bound(
      'minItems',
      ({ length }: readonly unknown[], limit: number) => length >= limit,
      (limit) => `must not have fewer than ${limit} items`,
    ),
    bound(
      'maxItems',
      ({ length }: readonly unknown[], limit: number) => length <= limit,
      (limit) => `must not have more than ${limit} items`,
    ),
    bound(
      'uniqueItems',
      (items: readonly unknown[], isWanted: boolean) => !isWanted || differing(items) === items.length,
      () => 'must not have duplicate items',
    ),
  ],
  string: [
    bound(
      'minLength',
      (text: string, length: number) => !isShorter(text, length),
      (limit) => `must not have fewer than ${limit} characters`,
    ),
    bound(
      'maxLength',
      (text: string, length: number) => !isLonger(text, length),
      (limit) => `must not have more than ${limit} characters`,
    ),
    bound(
      'pattern',
      (text: string, pattern: string) => unicodePattern(pattern).test(text),
      (pattern) => `must match pattern "${pattern}"`,
    ),
  ],
  number: NUMBER_BOUNDS,
  integer: NUMBER_BOUNDS,
}

/** The bounds that a schema sets, as one check of a value that is of its type. */
function boundsCheck(type: string, node: SchemaNode): (value: never) => boolean {
  const set = (BOUNDS[type] ?? []).flatMap(({ word, isWithin }) => {
    const limit = node[word] as never
    return limit === undefined ? [] : [(value: never) => isWithin(value, limit)]
  })
  const [first] = set
  if (first === undefined) return () => true
  return set.length === 1 ? first : (value) => set.every((isWithin) => isWithin(value))
}

/** A text has as many code points as code units, or half as many: it is counted only where that decides. */
const isShorter = (text: string, length: number): boolean =>
  text.length < length || (text.length < 2 * length && codePoints(text) < length)

const isLonger = (text: string, length: number): boolean =>
  text.length > length && (text.length > 2 * length || codePoints(text) > length)

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Patterns stand in schemas, and never come from a client: there are as many as there are different ones in the source. */
const compiledPatterns = new Map<string, RegExp>()

export function unicodePattern(pattern: string): RegExp {
  let compiled = compiledPatterns.get(pattern)
  if (compiled === undefined) {
    compiled = new RegExp(pattern, 'u')
    compiledPatterns.set(pattern, compiled)
  }
  return compiled
}

/** Puts defaults where nothing stands, in place where there are containers, and returns the value. */
export function fillDefaults(schema: TSchema, value: unknown): unknown {
  return fill(schema as SchemaNode, value)
}

function fill(node: SchemaNode, given: unknown): unknown {
  const value = given === undefined && 'default' in node ? structuredClone(node.default) : given
  if (node.anyOf !== undefined) return fillUnion(node.anyOf, value)
  if (node.items !== undefined && Array.isArray(value)) {
    for (const [index, item] of value.entries()) value[index] = fill(node.items, item)
  } else if (isMembers(value)) fillMembers(node, value as Record<string, unknown>)
  return value
}

/** A branch that fits once it is filled; the value as it is where none does. */
function fillUnion(branches: readonly SchemaNode[], value: unknown): unknown {
  for (const branch of branches) {
    const filled = fill(branch, structuredClone(value))
    if (checkOf(branch)(filled)) return filled
  }
  return value
}

function fillMembers({ properties = {}, patternProperties = {} }: SchemaNode, value: Record<string, unknown>): void {
  for (const [key, child] of Object.entries(properties)) {
    const filled = fill(child, Object.hasOwn(value, key) ? value[key] : undefined)
    if (filled !== undefined) value[key] = filled
  }
  for (const [pattern, child] of Object.entries(patternProperties)) {
    if (!('default' in child)) continue
    for (const key of Object.keys(value)) if (unicodePattern(pattern).test(key)) value[key] = fill(child, value[key])
  }
}
