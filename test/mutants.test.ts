import { describe, expect, it } from 'vitest'
import { drawMutants } from '../bench/mutants/draw-mutants.ts'
import { type Mutation, mutated, mutationsOf } from '../bench/mutants/mutations.ts'
import { NearestTests } from '../bench/mutants/nearest-tests.ts'
import { reportOf } from '../bench/mutants/report.ts'

/** The mutants of a piece of source by one operator, each as its line reads afterwards. */
function mutants(text: string, operator: Mutation['operator']): string[] {
  return mutationsOf('a.ts', text).flatMap((mutation) => {
    if (mutation.operator !== operator) return []
    return [mutated(text, mutation).split('\n')[mutation.line - 1]!.trim()]
  })
}

describe('the operators of the mutation runner', () => {
  it.each([
    ['sign', 'const a = b + c', ['const a = b - c']],
    ['sign', 'a -= -b', ['a += -b', 'a -= (b)']],
    ['sign', 'a++', ['a--']],
    ['sign', 'for (let i = 0; i < n; i++) a(i)', []],
    ['sign', "const a = 'b' + c", []],
    ['comparison', 'const a = (b + 1) <= (c)', ['const a = (b + 1) >= (c)']],
    ['condition', 'if (a === b) c()', ['if (!(a === b)) c()']],
    ['condition', 'const a = b !== c', ['const a = b === c']],
    ['condition', 'const a = !(b || c)', ['const a = (b || c)', 'const a = !(b && c)']],
    ['condition', 'const a = b ? 1 : 2', ['const a = !(b) ? 1 : 2']],
    ['off by one', 'const a = b.length > c', ['const a = b.length >= c']],
    ['off by one', 'const a = now > endsAt', []],
    ['off by one', 'const a = list[0]', ['const a = list[1]']],
    ['off by one', 'const a = 500', []],
    ['unit', 'const WAIT_MS = 5', ['const WAIT_MS = (5 * 1000)']],
    ['unit', 'const a = msToUs(b)', ['const a = (b)']],
    ['unit', 'const a = (b + c) * 1_000', ['const a = (b + c)']],
    ['unit', 'const a = this.heldTokens + b', ['const a = (this.heldTokens * 1000) + b']],
    ['min/max', 'const a = Math.min(b, c)', ['const a = Math.max(b, c)']],
    ['await', 'const a = await b()', ['const a =  b()']],
    ['await', 'async () => { await b() }', ['async () => { ; b() }']],
    ['statement', 'a.push(b)', [';']],
    ['statement', 'if (a) return', [';']],
    ['statement', 'if (a) return\nelse b()', ['else ;']],
  ] as const)('%s: %s', (operator, text, expected) => {
    // A `return` outside a function is parsed all the same: the piece is wrapped where it has one.
    const isLoose = text.includes('return')
    const found = isLoose
      ? mutants(`function f() {\n${text}\n}`, operator)
      : mutants(text, operator).map((line) => line.trim())
    expect(found).toEqual(expected)
  })

  it('leave types, imports, assertions and what is thrown alone', () => {
    const text = [
      "import { a } from './1.ts'",
      'type A = 1 | -2',
      'interface B { readonly c: 0; d(e: A extends 1 ? 2 : 3): void }',
      "assert(a > 1, 'no')",
      'throw new Error(String(a + 1))',
    ].join('\n')
    expect(mutationsOf('a.ts', text).map(({ now }) => now)).toEqual([';'])
  })

  it('make programs that can be parsed', () => {
    const text =
      'export async function f(a: number[]) {\n  if (a.length < 1 && !a[0]) return\n  await (a[0] ? g : h)(a)\n}'
    for (const mutation of mutationsOf('a.ts', text))
      expect(() => mutationsOf('a.ts', mutated(text, mutation))).not.toThrow()
  })
})

describe('a draw of mutants', () => {
  const text = Array.from({ length: 40 }, (_, i) => `a${i} = b + c < d\nawait e(${i % 9})`).join('\n')
  const all = mutationsOf('a.ts', text)

  it('is the same for the same seed, and another for another', () => {
    expect(drawMutants(all, 20, 1)).toEqual(drawMutants(all, 20, 1))
    expect(drawMutants(all, 20, 1)).not.toEqual(drawMutants(all, 20, 2))
  })

  it('has as many of each operator as there are, and no place twice', () => {
    const drawn = drawMutants(all, 50, 1)
    const counts = new Map<string, number>()
    for (const { operator } of drawn) counts.set(operator, (counts.get(operator) ?? 0) + 1)
    expect([...counts.values()]).toEqual([10, 10, 10, 10, 10])
    expect(new Set(drawn.map(({ line, operator }) => `${line} ${operator}`)).size).toBe(50)
    expect(drawMutants(all, 1e6, 1).length).toBeLessThanOrEqual(all.length)
  })
})

it('nearest tests are those of the same name, then of the folder, then by imports', () => {
  const near = new NearestTests(`${import.meta.dirname}/..`, [
    'src/jobs/run-job.test.ts',
    'src/jobs/run-line.test.ts',
    'src/jobs/split-lines.test.ts',
    'src/policy/admission/feasibility.test.ts',
  ])
  expect(near.of('src/jobs/run-line.ts', 9)).toEqual(['src/jobs/run-line.test.ts', 'src/jobs/run-job.test.ts'])
  expect(near.of('src/jobs/run-line.ts', 1)).toEqual(['src/jobs/run-line.test.ts'])
  expect(near.of('src/base/clock.ts', 9)).toContain('src/jobs/run-job.test.ts')
  expect(near.of('src/cli/cli.ts', 9)).toEqual([])
})

describe('a report of mutants', () => {
  const all = mutationsOf('a.ts', 'a = b + c\nd = e - f\ng = Math.min(h, i)')
  const entry = { file: 'a.ts', text: 'd = e - f', was: '-', now: '+', reason: 'f is zero' }
  const tried = (caught: readonly string[]) =>
    all.map((mutation) => ({ ...mutation, tests: [], caughtBy: caught.includes(mutation.text) ? 'a test' : undefined }))

  it('counts what was caught, accepted survivors among those that were not', () => {
    const terms = { all, accepted: [entry], seed: 1 }
    const report = reportOf(tried(all.map(({ text }) => text).filter((text) => text !== entry.text)), terms)
    expect(report.caughtRatio).toBeCloseTo((all.length - 2) / all.length)
    expect(report.survivors.map(({ accepted }) => accepted)).toContain('f is zero')
    expect(report.stale).toEqual([])
  })

  it('names accepted survivors that are caught now, or gone', () => {
    const gone = { ...entry, text: 'd = e - g' }
    const { stale } = reportOf(tried(['d = e - f']), { all, accepted: [entry, gone], seed: 1 })
    expect(stale).toEqual([
      { entry, because: 'caught by a test' },
      { entry: gone, because: 'the line or the change is gone' },
    ])
    // What was not drawn says nothing.
    expect(reportOf([], { all, accepted: [entry], seed: 1 }).stale).toEqual([])
  })
})
