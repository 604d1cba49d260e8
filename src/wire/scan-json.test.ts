import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsOf } from '../../test/support/cpu-time.ts'
import { readJson, readStorable } from './read-body.ts'
import { hasLoneSurrogate, hasNul, JSON_BOUNDS, tooComplex } from './scan-json.ts'

const scan = (text: string, bounds = JSON_BOUNDS) => tooComplex(Buffer.from(text), bounds)

/** What the scan should count, from the value itself. */
function countsOf(value: unknown, depth = 0): { depth: number; keys: number; containers: number; values: number } {
  const total = { depth, keys: 0, containers: 0, values: 0 }
  if (typeof value !== 'object' || value === null) return total
  total.depth = depth + 1
  total.containers = 1
  const inside: unknown[] = Object.values(value)
  if (!Array.isArray(value)) total.keys = inside.length
  total.values = Math.max(0, inside.length - 1)
  for (const one of inside) {
    const more = countsOf(one, depth + 1)
    total.depth = Math.max(total.depth, more.depth)
    total.keys += more.keys
    total.containers += more.containers
    total.values += more.values
  }
  return total
}

describe('the scan', () => {
  it('agrees with the parsed value, to the last key', () => {
    const odd = fc.string({ unit: fc.constantFrom('"', '\\', '{', '[', ':', ',', 'x', '\n', 'é', '\u{1f600}') })
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, true, -0.5, 1e300),
        odd,
        fc.array(tie('value'), { maxLength: 5 }),
        fc.dictionary(odd, tie('value'), { maxKeys: 5 }),
      ),
    })).value
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent)
        const { depth, keys, containers, values } = countsOf(value)
        const exact = { depthMax: depth, keysMax: keys, containersMax: containers, valuesMax: values }
        expect(scan(text, exact)).toBeUndefined()
        for (const name of ['depthMax', 'keysMax', 'containersMax', 'valuesMax'] as const) {
          if (exact[name] === 0) continue
          expect(scan(text, { ...exact, [name]: exact[name] - 1 })).toMatchObject({ code: 'body-too-complex' })
        }
      }),
    )
  })

  it.each([
    ['keys', `{${'"k":1,'.repeat(JSON_BOUNDS.keysMax + 1)}"l":2}`],
    ['lists', `[${'[],'.repeat(JSON_BOUNDS.containersMax)}[]]`],
    ['objects', `[${'{},'.repeat(JSON_BOUNDS.containersMax)}{}]`],
    ['values', `[${'1,'.repeat(JSON_BOUNDS.valuesMax + 1)}1]`],
    ['depth', '['.repeat(200) + ']'.repeat(200)],
    ['depth of objects', `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`],
  ])('refuses too many: %s', (_what, text) => {
    expect(scan(text)).toMatchObject({ code: 'body-too-complex' })
  })

  it.each([
    ['a long text of quotes', `"${'\\"'.repeat(2_000_000)}"`],
    ['a long text of backslashes', `"${'\\\\'.repeat(2_000_000)}"`],
    ['a text without end', `"${'a'.repeat(4_000_000)}`],
    ['many short texts', `[${'"",'.repeat(1_000_000)}""]`],
    ['escapes of halves', `"${'\\ud83d\\ude00'.repeat(333_000)}"`],
  ])('is quick with four megabytes of %s', async (_what, text) => {
    const bytes = Buffer.from(text)
    let best = Number.POSITIVE_INFINITY
    for (let i = 0; i < 3; i++) {
      const cpuMs = await cpuMsOf(() => {
        tooComplex(bytes)
        hasLoneSurrogate(text)
      })
      best = Math.min(best, cpuMs)
    }
    // 30 ms at worst; the bound leaves room for a slower processor and still finds anything quadratic.
    expect(best).toBeLessThan(500)
  })
})

describe('half a character', () => {
  it.each([
    ['"\\ud83d\\ude00"', false],
    ['"\\uD83D\\uDE00 and \\ud83d\\ude00"', false],
    ['"\\\\ud83d"', false],
    ['"\\\\\\\\ud83d \\u00e9 \\n"', false],
    ['"\\ud83d"', true],
    ['"\\ude00"', true],
    ['"\\ud83d\\ud83d\\ude00"', true],
    ['"\\ud83d\\n\\ude00"', true],
    ['"\\ud83d \\ude00"', true],
    ['"\\\\\\ud83d"', true],
    ['"\\ud83d\\ude00\\udfff"', true],
    ['{"\\udbff":1}', true],
  ])('%s: %s', (text, isLone) => {
    expect(hasLoneSurrogate(text)).toBe(isLone)
    expect(readJson(Buffer.from(text))).toMatchObject(
      isLone ? { fault: { code: 'invalid-encoding' } } : { value: JSON.parse(text) },
    )
  })

  it('is found exactly where a parsed text is not well formed', () => {
    const unit = fc.constantFrom('\\ud83d', '\\ude00', '\\uDBFF', '\\uDC00', '\\\\', '\\"', '\\u0041', 'u', 'd83d')
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 8 }), (parts) => {
        const text = `"${parts.join('')}"`
        expect(hasLoneSurrogate(text)).toBe(!(JSON.parse(text) as string).isWellFormed())
      }),
    )
  })
})

describe('the character U+0000', () => {
  it.each([
    ['"\\u0000"', true],
    ['"a\\n\\\\\\u0000"', true],
    ['"\\\\u0000"', false],
    ['"\\u00000 \\\\\\\\u0000"', true],
    ['"u0000"', false],
  ])('%s: %s', (text, isThere) => {
    expect(hasNul(text)).toBe((JSON.parse(text) as string).includes('\u0000'))
    expect(hasNul(text)).toBe(isThere)
    expect(readStorable(Buffer.from(text)).kind).toBe(isThere ? 'fault' : 'ok')
    expect(readJson(Buffer.from(text)).kind).toBe('ok')
  })
})
