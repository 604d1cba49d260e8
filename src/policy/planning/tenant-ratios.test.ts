import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TENANT_RATIOS_DEFAULTS, TenantRatios } from './tenant-ratios.ts'

/** As many prompts of a thousand estimated tokens, reported as this many times as long. */
function report(ratios: TenantRatios, tenantId: string, ratio: number, prompts = 64): void {
  for (let i = 0; i < prompts; i++) {
    ratios.observe(i, { tenantId, estimatedTokens: 1_000, reportedTokens: 1_000 * ratio })
  }
}

describe('tenant ratios', () => {
  it('learns each tenant’s own ratio, and moves nobody else', () => {
    const ratios = new TenantRatios()
    report(ratios, 'honest', 1.1)
    const before = ratios.correct('honest', 20_007)
    const stranger = ratios.correct('stranger', 20_007)
    report(ratios, 'hostile', 100, 120)
    expect(ratios.correct('hostile', 1_000)).toBeGreaterThan(7_000)
    expect(ratios.correct('honest', 20_007)).toBe(before)
    expect(ratios.correct('stranger', 20_007)).toBe(stranger)
  })

  it('starts a stranger where the tenants are that are known well', () => {
    const ratios = new TenantRatios()
    for (const [tenantId, ratio] of Object.entries({ a: 1.2, b: 1.25, c: 1.3, d: 1.35, e: 1.4 })) {
      report(ratios, tenantId, ratio, 500)
    }
    expect(ratios.prior).toBeCloseTo(1.2, 1)
    expect(ratios.ratioOf('stranger')).toBe(ratios.prior)
    report(ratios, 'stranger', 1.2, 1)
    expect(ratios.ratioOf('stranger')).toBeCloseTo(1.2, 1)
  })

  it('gives two tenants no say in where a stranger starts', () => {
    const ratios = new TenantRatios()
    report(ratios, 'one', 8, 500)
    report(ratios, 'other', 8, 500)
    expect(ratios.prior).toBe(1)
  })

  it('lets no single tenant move the prior beyond the others and one', () => {
    const honest = fc.array(fc.double({ min: 0.6, max: 1.8, noNaN: true }), { minLength: 0, maxLength: 12 })
    const hostile = fc.double({ min: 0.001, max: 1_000, noNaN: true })
    fc.assert(
      fc.property(honest, hostile, (others, own) => {
        const ratios = new TenantRatios()
        for (const [i, ratio] of others.entries()) report(ratios, `honest-${i}`, ratio)
        report(ratios, 'hostile', own)
        const known = others.map((_, i) => ratios.ratioOf(`honest-${i}`))
        expect(ratios.prior).toBeGreaterThanOrEqual(Math.min(1, ...known))
        expect(ratios.prior).toBeLessThanOrEqual(Math.max(1, ...known))
      }),
      { numRuns: 200 },
    )
  })

  it('keeps the prior within its bounds, whatever all tenants together report', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0.001, max: 1_000, noNaN: true }), { maxLength: 12 }), (all) => {
        const ratios = new TenantRatios()
        for (const [i, ratio] of all.entries()) report(ratios, `tenant-${i}`, ratio)
        expect(ratios.prior).toBeGreaterThanOrEqual(TENANT_RATIOS_DEFAULTS.priorMin)
        expect(ratios.prior).toBeLessThanOrEqual(TENANT_RATIOS_DEFAULTS.priorMax)
      }),
      { numRuns: 50 },
    )
  })

  it('forgets the tenant that was silent for longest, and never keeps more than its bound', () => {
    const ratios = new TenantRatios({ limits: { tenantsMax: 3 } })
    for (const tenantId of ['a', 'b', 'c']) report(ratios, tenantId, 2, 8)
    report(ratios, 'a', 2, 1)
    report(ratios, 'd', 2, 1)
    expect(ratios.tenantCount).toBe(3)
    expect(ratios.ratioOf('a')).toBeGreaterThan(1.5)
    expect(ratios.ratioOf('b')).toBe(ratios.prior)
    for (let i = 0; i < 100; i++) report(ratios, `tenant-${i}`, 2, 1)
    expect(ratios.tenantCount).toBe(3)
  })
})
