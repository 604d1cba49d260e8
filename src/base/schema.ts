import type TypeBox from 'typebox'

/**
 * Makes schemas of JSON: the part of TypeBox that this project uses, with TypeBox's own types, so that `Static<typeof …>`
 * works as it does there. TypeBox itself is not loaded: its 680 files took a third of every start.
 *
 * A schema is plain JSON Schema and is read by `check-schema.ts`.
 */
type Builders = Pick<
  typeof TypeBox,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
>

/** The keywords that a schema of ours may have. Any other one is a mistake that the first check finds. */
export interface SchemaNode {
  readonly type?: string
  readonly const?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly SchemaNode[]
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>
  readonly additionalProperties?: boolean
  readonly required?: readonly string[]
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly items?: SchemaNode
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly default?: unknown
  readonly description?: string
  /** Name of the setting in the environment, where it is not made from the path. */
  readonly env?: string
}

/** Marks a property that may be absent; hidden, because it is no keyword of JSON Schema. */
const OPTIONAL = '~optional'

/** Keys of any text. */
const ANY_KEY = '^.*$'

const isOptional = (schema: object): boolean => OPTIONAL in schema

const ofType =
  (type: string) =>
  (options: object = {}) => ({ type, ...options })

function objectOf(properties: Readonly<Record<string, object>>, options: object = {}): object {
  const required = Object.keys(properties).filter((key) => !isOptional(properties[key] as object))
  return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
}

/** A copy, so that the schema itself stays as it is where it is used without being optional. */
function optional(schema: object): object {
  return Object.defineProperty({ ...schema }, OPTIONAL, { value: true, enumerable: false })
}

function recordOf(key: SchemaNode, value: object, options: object = {}): object {
  return { type: 'object', patternProperties: { [key.pattern ?? ANY_KEY]: value }, ...options }
}

export const Type = {
  Array: (items: object, options: object = {}) => ({ type: 'array', items, ...options }),
  Boolean: ofType('boolean'),
  Enum: (values: readonly unknown[], options: object = {}) => ({ enum: values, ...options }),
  Integer: ofType('integer'),
  Literal: (value: string | number | boolean, options: object = {}) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: ofType('null'),
  Number: ofType('number'),
  Object: objectOf,
  Optional: optional,
  Record: recordOf,
  String: ofType('string'),
  Union: (anyOf: readonly object[], options: object = {}) => ({ anyOf, ...options }),
  Unknown: (options: object = {}) => ({ ...options }),
} as unknown as Builders
