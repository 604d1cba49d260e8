import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { excesses, wholeAllowance } from '../../../test/support/administration.ts'
import type { KeyTerms } from '../../domain/key-terms.ts'
import { parseAddress } from './client-range.ts'
import { clipTerms, isPartWithin, rangesOf, TERMS_PARTS } from './clip-terms.ts'
import { callDenial } from './may-call.ts'
import { type AuthorityParent, narrow } from './narrow.ts'

const parentOf = (terms: KeyTerms): AuthorityParent => ({ holder: { kind: 'tenant', id: 'shop' }, terms })

const rate = fc
  .constantFrom(10, 100)
  .chain((perMinute) => fc.constantFrom(10, 100).map((burst) => ({ perMinute, burst })))
const some = <T>(...words: readonly T[]) => fc.subarray([...words])
const amount = fc.constantFrom(10, 100)
/** In the order that clipping gives them, so that equal lists are equal. */
const budgets = fc
  .record({
    month: fc.option(fc.record({ nanoMax: amount, tokensMax: amount }, { requiredKeys: ['nanoMax'] })),
    day: fc.option(fc.record({ nanoMax: amount })),
    isHard: fc.boolean(),
  })
  .map(({ month, day, isHard }) => [
    ...(day === null ? [] : [{ period: 'day' as const, isHard: true, marks: [], ...day }]),
    ...(month === null ? [] : [{ period: 'month' as const, isHard, marks: [0.5], ...month }]),
  ])
const terms = fc.record(
  {
    notBeforeAtMs: fc.nat(5),
    expiresAtMs: fc.integer({ min: 6, max: 12 }),
    models: some('m1', 'm2', 'm3'),
    routes: some('chat' as const, 'embeddings' as const),
    bands: some('interactive' as const, 'offline' as const),
    clientRanges: some('10.0.0.0/8', '10.1.0.0/16', '192.168.0.0/16', '2001:db8:0:0:0:0:0:0/32'),
    allowance: fc.record(
      { requests: rate, tokens: rate, concurrencyMax: fc.constantFrom(10, 100), budgets },
      { requiredKeys: [] },
    ),
    canInfer: fc.boolean(),
    canManage: fc.boolean(),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<KeyTerms>

describe('clipped terms', () => {
  it('are within both, by every part and by every single case', () => {
    fc.assert(
      fc.property(terms, terms, (one, other) => {
        const common = clipTerms(one, other)
        for (const outer of [one, other]) {
          expect(TERMS_PARTS.filter((part) => !isPartWithin(part, outer, common))).toEqual([])
          expect(excesses(outer, common)).toEqual([])
        }
      }),
    )
  })

  it('do not depend on the order of clipping, and clipping again changes nothing', () => {
    fc.assert(
      fc.property(terms, terms, terms, (a, b, c) => {
        const [left, right] = [clipTerms(clipTerms(a, b), c), clipTerms(a, clipTerms(c, b))]
        expect([excesses(left, right), excesses(right, left)]).toEqual([[], []])
        expect(clipTerms(left, left)).toEqual(left)
      }),
    )
  })
})

describe('narrow', () => {
  it('refuses exactly what asks by name for more than the parent has', () => {
    fc.assert(
      fc.property(terms, terms, (parent, wanted) => {
        const result = narrow(parentOf(parent), wanted)
        const allowance = wholeAllowance(parent, wanted)
        const asked = { ...parent, ...wanted, ...(wanted.allowance && { allowance }) }
        expect(result.kind).toBe(excesses(parent, asked).length === 0 ? 'narrowed' : 'refused')
        if (result.kind === 'refused') {
          expect(result.refusal.rule).toMatch(/-within-parent$/)
          expect(result.refusal.authority).toEqual({ kind: 'tenant', id: 'shop' })
        } else {
          expect(excesses(parent, result.terms)).toEqual([])
          expect(narrow(parentOf(parent), result.terms)).toEqual(result)
        }
      }),
    )
  })

  it('gives the parent’s part for one that is not named, and says who forbids a part', () => {
    const parent = parentOf({ models: ['m1', 'm2'], expiresAtMs: 6, allowance: { concurrencyMax: 5 } })
    expect(narrow(parent, { models: ['m1'] })).toEqual({
      kind: 'narrowed',
      terms: { models: ['m1'], expiresAtMs: 6, allowance: { concurrencyMax: 5 } },
    })
    expect(narrow(parent, { models: ['m1', 'm3'] })).toEqual({
      kind: 'refused',
      refusal: {
        rule: 'models-within-parent',
        authority: { kind: 'tenant', id: 'shop' },
        param: 'terms.models',
        because:
          'the wanted models ["m1","m3"] exceeds what the tenant shop may do, ["m1","m2"]. Ask for less, or have the tenant shop be given more first',
      },
    })
    expect(narrow(parentOf({ models: [] }), { models: ['m1'] }).kind).toBe('refused')
    expect(narrow(parentOf({ clientRanges: [] }), {})).toEqual({ kind: 'narrowed', terms: { clientRanges: [] } })
  })
})

describe('a call', () => {
  const inForce = (own: KeyTerms) => ({ terms: own, ranges: own.clientRanges && rangesOf(own.clientRanges) })
  const address = parseAddress('10.1.2.3')
  const chat = { address, route: 'chat', model: 'm1', band: 'standard' } as const
  it.each([
    [{}, undefined],
    [{ clientRanges: ['10.0.0.0/8'] }, undefined],
    [{ clientRanges: ['10.2.0.0/16'] }, 'clientRanges'],
    [{ clientRanges: [] }, 'clientRanges'],
    [{ canInfer: false }, 'canInfer'],
    [{ canInfer: true, canManage: false }, undefined],
    [{ routes: ['embeddings'] }, 'routes'],
    [{ models: ['m2'] }, 'models'],
    [{ models: [] }, 'models'],
    [{ bands: ['offline'] }, 'bands'],
    [{ routes: ['chat'], models: ['m1'], bands: ['standard'] }, undefined],
  ] as const)('with the terms %j: %s', (own, denial) => expect(callDenial(inForce(own), chat)).toBe(denial))

  it('from an unknown address is in no range', () => {
    const call = { ...chat, address: undefined }
    expect(callDenial(inForce({ clientRanges: ['0.0.0.0/0', '::/0'] }), call)).toBe('clientRanges')
    expect(callDenial(inForce({}), call)).toBeUndefined()
  })
})
