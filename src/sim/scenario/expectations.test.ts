import { expect, it } from 'vitest'
import type { Report } from '../report/report.ts'
import { checkExpectations } from './expectations.ts'
import type { Expectation } from './scenario.ts'

const report = (parts: Record<string, { ranRatio: number; requests: { shed: number } }>): Report =>
  ({ requests: { shed: 3 }, tenants: { a: { late: 1 }, b: { late: 4 } }, parts }) as unknown as Report

const check = (expectation: Omit<Expectation, 'what'>, of: Report) =>
  checkExpectations([{ what: 'it holds', ...expectation }], of, {})[0]!

it('looks at one value, or at every name', () => {
  const seen = report({})
  expect(check({ path: 'requests.shed', atMost: 3 }, seen)).toMatchObject({ holds: true, because: '3 (≤ 3)' })
  expect(check({ path: 'requests.shed', atMost: 2 }, seen).holds).toBe(false)
  expect(check({ path: 'tenants.*.late', atMost: 3 }, seen).because).toBe('tenants.b.late is 4, above 3')
  expect(check({ path: 'tenants.*.late', atMost: 3, except: ['b'] }, seen).holds).toBe(true)
})

it('names the value that is nearest to its bound, or furthest beyond it', () => {
  const seen = report({})
  const nearestOf = (expectation: Omit<Expectation, 'what'>) => check(expectation, seen).nearest
  expect(nearestOf({ path: 'tenants.*.late', atMost: 5 })).toEqual({ value: 4, bound: 5, isUpper: true, slack: 0.2 })
  expect(nearestOf({ path: 'tenants.*.late', atMost: 2 })).toMatchObject({ value: 4, slack: -1 })
  // The first value that fails is the reason; the worst of all is the figure.
  expect(check({ path: 'tenants.*.late', atMost: 0 }, seen).because).toBe('tenants.a.late is 1, above 0')
  expect(nearestOf({ path: 'tenants.*.late', atMost: 0 })).toEqual({ value: 4, bound: 0, isUpper: true, slack: -4 })
  expect(nearestOf({ path: 'requests.shed', atLeast: 2, atMost: 9 })).toMatchObject({ bound: 2, isUpper: false })
  expect(check({ path: 'tenants.c.late', atMost: 3 }, seen)).not.toHaveProperty('nearest')
})

it('names the nearest value of all variants', () => {
  const other = { ...report({}), requests: { shed: 7 } } as unknown as Report
  const expectation = { what: 'few', of: '*', path: 'requests.shed', atMost: 8 }
  expect(checkExpectations([expectation], report({}), { other })[0]).toMatchObject({
    holds: true,
    nearest: { value: 7, bound: 8 },
  })
})

it('fails when there is nothing to look at', () => {
  expect(check({ path: 'tenants.c.late', atMost: 3 }, report({})).because).toBe('nothing is at tenants.c.late')
})

it('fails, and says why, when the part that it is about was not run to its end', () => {
  const parts = {
    whole: { ranRatio: 1, requests: { shed: 0 } },
    half: { ranRatio: 0.5, requests: { shed: 0 } },
    none: { ranRatio: 0, requests: { shed: 0 } },
  }
  const about = (name: string) => check({ path: `parts.${name}.requests.shed`, atMost: 1 }, report(parts))
  expect(about('whole').holds).toBe(true)
  expect(about('half')).toMatchObject({ holds: false, because: expect.stringContaining('only 50 % of the part half') })
  expect(about('none')).toMatchObject({ holds: false, because: expect.stringContaining('the part none was not run') })
  expect(about('*').holds).toBe(false)
})
