import fc from 'fast-check'
import TypeBox, { type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { expect, it } from 'vitest'
import { fillDefaults, isValid } from './check-schema.ts'
import { Type } from './schema.ts'
import { faultsOf } from './schema-faults.ts'

/** The same words as TypeBox, the twin: same schemas, same verdicts, same faults, same defaults. */
type Make = (builders: typeof Type) => TSchema

const KEYS = ['a', 'b', 'kind', 'a/b~c']
const TEXTS = ['', 'a', 'ab', 'abc', '😀', 'a😀b', 'x\ny', '7']
const NUMBERS = [-1, 0, 0.5, 1, 2, 3, 1e300]

const texts = fc.constantFrom(...TEXTS)
const bound = fc.option(fc.constantFrom(0, 1, 2), { nil: undefined })
const defined = (options: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

const stringOptions = fc
  .record({
    minLength: bound,
    maxLength: bound,
    pattern: fc.constantFrom(undefined, '^a', '^.$'),
    default: fc.option(texts, { nil: undefined }),
  })
  .map(defined)
const numberOptions = fc
  .record({ minimum: bound, maximum: bound, exclusiveMinimum: bound, exclusiveMaximum: bound, default: bound })
  .map(defined)
const listOptions = fc
  .record({ minItems: bound, maxItems: bound, uniqueItems: fc.constantFrom(undefined, true) })
  .map(defined)
const objectOptions = fc
  .record({
    additionalProperties: fc.constantFrom(undefined, false, true),
    maxProperties: bound,
    default: fc.constantFrom(undefined, {}),
  })
  .map(defined)

const { schema } = fc.letrec<{ schema: Make; leaf: Make; branch: Make }>((tie) => ({
  schema: fc.oneof({ maxDepth: 4, withCrossShrink: true }, tie('leaf'), tie('branch')),
  leaf: fc.oneof(
    stringOptions.map(
      (options): Make =>
        (make) =>
          make.String(options),
    ),
    numberOptions.map(
      (options): Make =>
        (make) =>
          make.Number(options),
    ),
    numberOptions.map(
      (options): Make =>
        (make) =>
          make.Integer(options),
    ),
    texts.map(
      (text): Make =>
        (make) =>
          make.Literal(text),
    ),
    fc.constant<Make>((make) => make.Enum(['a', 'ab', '7'])),
    fc.constant<Make>((make) => make.Boolean({ default: true })),
    fc.constant<Make>((make) => make.Null()),
    fc.constant<Make>((make) => make.Unknown()),
  ),
  branch: fc.oneof(
    fc.tuple(tie('schema'), listOptions).map(
      ([items, options]): Make =>
        (make) =>
          make.Array(items(make), options),
    ),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map(
      (branches): Make =>
        (make) =>
          make.Union(branches.map((one) => one(make))),
    ),
    fc.tuple(fc.constantFrom(undefined, '^a'), tie('schema')).map(
      ([pattern, value]): Make =>
        (make) =>
          make.Record(make.String(pattern === undefined ? { maxLength: 2 } : { pattern }), value(make)),
    ),
    fc
      .tuple(
        fc.uniqueArray(fc.tuple(fc.constantFrom(...KEYS), fc.boolean(), tie('schema')), { selector: ([key]) => key }),
        objectOptions,
      )
      .map(
        ([members, options]): Make =>
          (make) =>
            make.Object(
              Object.fromEntries(
                members.map(([key, isOptional, one]) => [key, isOptional ? make.Optional(one(make)) : one(make)]),
              ),
              options,
            ),
      ),
  ),
}))

const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    texts,
    fc.constantFrom(...NUMBERS),
    fc.constantFrom(null, undefined, true, false, Number.NaN),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...KEYS, 'other', 'x\ny'), tie('value'), { maxKeys: 4 }),
  ),
}))

it('makes the schemas that TypeBox makes', () => {
  fc.assert(
    fc.property(schema, (make) => {
      expect(JSON.stringify(make(Type))).toBe(JSON.stringify(make(TypeBox)))
    }),
  )
})

it('calls valid what TypeBox calls valid', () => {
  fc.assert(
    fc.property(schema, value, (make, given) => {
      expect(isValid(make(Type), given)).toBe(Value.Check(make(TypeBox), given))
    }),
    { numRuns: 2_000 },
  )
})

it('finds the faults that TypeBox finds, in the same order', () => {
  const told = (faults: ReadonlyArray<{ keyword: string; instancePath: string; message: string }>) =>
    faults.map(({ keyword, instancePath, message }) => [keyword, instancePath, message])
  fc.assert(
    fc.property(schema, value, (make, given) => {
      const faults = faultsOf(make(Type), given)
      expect(told(faults)).toEqual(told(Value.Errors(make(TypeBox), given) as never))
      expect(faults.length === 0).toBe(isValid(make(Type), given))
    }),
    { numRuns: 2_000 },
  )
})

it('fills in the defaults that TypeBox fills in', () => {
  fc.assert(
    fc.property(schema, value, (make, given) => {
      // As JSON: TypeBox also gives named members to a list, which is no object.
      const filled = JSON.stringify(fillDefaults(make(Type), structuredClone(given)))
      expect(filled).toBe(JSON.stringify(Value.Default(make(TypeBox), structuredClone(given))))
    }),
    { numRuns: 2_000 },
  )
})

it('refuses a schema with a keyword that it does not know', () => {
  expect(() => isValid(Type.String({ format: 'email' }), 'x')).toThrow('schemas have no keyword format for string')
  expect(() => isValid(Type.Number({ multipleOf: 2 }), 2)).toThrow('multipleOf')
})

it('takes names of the prototype for members only where the value has them', () => {
  const closed = Type.Object({ toString: Type.Optional(Type.String()) }, { additionalProperties: false })
  expect(isValid(closed, {})).toBe(true)
  expect(isValid(closed, JSON.parse('{"__proto__":1}'))).toBe(false)
  expect(isValid(Type.Object({ toString: Type.Unknown() }), {})).toBe(false)
})
