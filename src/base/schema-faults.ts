import { BOUNDS, isMembers, isOfType, knownKeys, unicodePattern } from './check-schema.ts'
import type { SchemaNode } from './schema.ts'

/** What is wrong with a value, keyword by keyword, in the order in which a reader of the schema would find it. */
export interface SchemaFault {
  readonly keyword: string
  /** `/messages/0/role` */
  readonly instancePath: string
  readonly message: string
  readonly params: object
}

/** A refusal names one parameter. Eight faults are enough to choose from, and bound the work on a body that is all wrong. */
const FAULTS_MAX = 8

export function faultsOf(schema: object, value: unknown): readonly SchemaFault[] {
  const faults: SchemaFault[] = []
  collect(schema as SchemaNode, value, '', faults)
  return faults
}

/** Says whether the value is valid. */
function collect(node: SchemaNode, value: unknown, path: string, faults: SchemaFault[]): boolean {
  if (faults.length >= FAULTS_MAX) return false
  const { type, enum: choices } = node
  const found = [
    type === undefined ||
      isOfType(type, value) ||
      add(faults, { keyword: 'type', instancePath: path, message: `must be ${type}`, params: { type } }),
  ]
  if (isMembers(value)) found.push(collectMembers(node, value, path, faults))
  else if (Array.isArray(value)) found.push(collectItems(node, value, path, faults))
  else found.push(addBounds(faults, path, node, value))
  if ('const' in node && value !== node.const) {
    const params = { allowedValue: node.const }
    found.push(add(faults, { keyword: 'const', instancePath: path, message: 'must be equal to constant', params }))
  }
  if (choices?.includes(value) === false) {
    const [message, params] = ['must be equal to one of the allowed values', { allowedValues: choices }]
    found.push(add(faults, { keyword: 'enum', instancePath: path, message, params }))
  }
  if (node.anyOf !== undefined) found.push(collectUnion(node.anyOf, value, path, faults))
  return !found.includes(false)
}

function add(faults: SchemaFault[], fault: SchemaFault): false {
  if (faults.length < FAULTS_MAX) faults.push(fault)
  return false
}

const textOf = (limit: unknown): string => (typeof limit === 'string' ? limit : JSON.stringify(limit))

/** A value of another type is within every bound. */
function addBounds(faults: SchemaFault[], instancePath: string, node: SchemaNode, value: unknown): boolean {
  const { type = '' } = node
  if (!isOfType(BASE_TYPE[type] ?? type, value)) return true
  let isWithin = true
  for (const bound of BOUNDS[type] ?? []) {
    const limit = node[bound.word]
    if (limit === undefined || bound.isWithin(value as never, limit as never)) continue
    isWithin = add(faults, {
      keyword: bound.word,
      instancePath,
      message: bound.message(textOf(limit)),
      params: { limit },
    })
  }
  return isWithin
}

/** The bounds of a whole number hold for every number: 0.5 is no integer, and below 1. */
const BASE_TYPE: Readonly<Record<string, string>> = { integer: 'number' }

function collectMembers(
  node: SchemaNode,
  value: Readonly<Record<string, unknown>>,
  path: string,
  faults: SchemaFault[],
): boolean {
  const { required = [], properties = {}, patternProperties = {} } = node
  let isValid = true
  const requiredProperties = required.filter((key) => !Object.hasOwn(value, key))
  if (requiredProperties.length > 0) {
    const message = `must have required properties ${requiredProperties.join(', ')}`
    isValid = add(faults, { keyword: 'required', instancePath: path, message, params: { requiredProperties } })
  }
  if (node.additionalProperties === false) isValid = refuseOthers(node, value, path, faults) && isValid
  for (const [pattern, child] of Object.entries(patternProperties)) {
    for (const [key, member] of Object.entries(value)) {
      if (unicodePattern(pattern).test(key)) isValid = collect(child, member, under(path, key), faults) && isValid
    }
  }
  for (const [key, child] of Object.entries(properties)) {
    if (!Object.hasOwn(value, key) || (value[key] === undefined && !required.includes(key))) continue
    isValid = collect(child, value[key], under(path, key), faults) && isValid
  }
  return addBounds(faults, path, node, value) && isValid
}

function refuseOthers(node: SchemaNode, value: object, path: string, faults: SchemaFault[]): boolean {
  const isKnown = knownKeys(node)
  const additionalProperties = Object.keys(value).filter((key) => !isKnown(key))
  if (additionalProperties.length === 0) return true
  for (const key of additionalProperties) {
    add(faults, { keyword: 'boolean', instancePath: under(path, key), message: 'schema is false', params: {} })
  }
  const [message, params] = ['must not have additional properties', { additionalProperties }]
  return add(faults, { keyword: 'additionalProperties', instancePath: path, message, params })
}

function collectItems(node: SchemaNode, value: readonly unknown[], path: string, faults: SchemaFault[]): boolean {
  let isValid = true
  const { items } = node
  if (items !== undefined) {
    for (const [index, item] of value.entries()) isValid = collect(items, item, `${path}/${index}`, faults) && isValid
  }
  return addBounds(faults, path, node, value) && isValid
}

/** The faults of every branch, when none is valid. */
function collectUnion(branches: readonly SchemaNode[], value: unknown, path: string, faults: SchemaFault[]): boolean {
  const failed: SchemaFault[][] = []
  for (const branch of branches) {
    const own: SchemaFault[] = []
    if (collect(branch, value, path, own)) return true
    failed.push(own)
  }
  for (const fault of failed.flat()) add(faults, fault)
  return add(faults, { keyword: 'anyOf', instancePath: path, message: 'must match a schema in anyOf', params: {} })
}

/** As JSON Pointer has it. */
const under = (path: string, key: string): string => `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
