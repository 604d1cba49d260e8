import fc from 'fast-check'

/** JSON that parsing and writing again would change: numbers stand as `@@1.0@@` until the text is written. */
const ODD_NUMBERS = ['1.0', '1e3', '-0.0', '0.10', '12345678901234567890', '3.141592653589793238462643']
export const oddNumber = fc.constantFrom(...ODD_NUMBERS).map((number) => `@@${number}@@`)

export const written = (json: unknown, spaces = 0): string =>
  JSON.stringify(json, undefined, spaces).replaceAll(/"@@([^"@]+)@@"/g, '$1')

/** Objects with members of any name but these, at every depth. */
export function unknownMembers(known: readonly string[]): fc.Arbitrary<Record<string, unknown>> {
  const name = fc
    .oneof(fc.constantFrom('service_tier', 'citations', 'stop_reason', 'token_ids', 'a"b', 'é\\'), fc.string())
    .filter((one) => !known.includes(one) && one !== '__proto__')
  const unknown: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 'usage', '"usage":null', '}],"choices":[', 'text\nwith\nlines'),
      fc.string(),
      oddNumber,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(name, tie('value'), { maxKeys: 3 }),
    ),
  })).value
  return fc.dictionary(name, unknown, { maxKeys: 3 })
}

/** The same object with its members in another order. */
export const shuffled = (json: Record<string, unknown>, order: readonly number[]): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(json)
      .map((entry, i) => [order[i % order.length] ?? 0, entry] as const)
      .sort(([a], [b]) => a - b)
      .map(([, entry]) => entry),
  )

export const someOrder = fc.array(fc.nat(9), { minLength: 1, maxLength: 9 })
