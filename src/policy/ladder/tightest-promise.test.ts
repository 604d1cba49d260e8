import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TightestPromise } from './tightest-promise.ts'

const tenant = (ttftUs: number, interTokenUs: number) => ({ slo: { ttftUs, interTokenUs } })

test('the example: each time comes from the tenant with the tightest one', () => {
  const promise = new TightestPromise([tenant(500_000, 40_000), tenant(2_000_000, 25_000)])
  expect([promise.ttftUs, promise.interTokenUs]).toEqual([500_000, 25_000])
  expect(promise.replace([tenant(500_000, 40_000)])).toBe(true)
  expect([promise.ttftUs, promise.interTokenUs]).toEqual([500_000, 40_000])
  expect(promise.replace([tenant(500_000, 40_000), tenant(900_000, 90_000)])).toBe(false)
})

test('is never looser than any tenant’s own, and is some tenant’s', () => {
  const times = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })), { minLength: 1 })
  fc.assert(
    fc.property(times, times, (before, after) => {
      const promise = new TightestPromise(before.map(([a, b]) => tenant(a, b)))
      promise.replace(after.map(([a, b]) => tenant(a, b)))
      for (const [ttftUs, interTokenUs] of after) {
        expect(promise.ttftUs).toBeLessThanOrEqual(ttftUs)
        expect(promise.interTokenUs).toBeLessThanOrEqual(interTokenUs)
      }
      expect(after.map(([ttftUs]) => ttftUs)).toContain(promise.ttftUs)
      expect(after.map(([, interTokenUs]) => interTokenUs)).toContain(promise.interTokenUs)
    }),
  )
})
