import { describe, expect, it } from 'vitest'
import { administer } from '../../../test/support/administration-laws.ts'

/** The long version of this test makes 100,000 calls. */
describe('administration', () => {
  const { violations, applied, refused } = administer(1, 5_000)

  it('keeps its laws over 5,000 random calls by every role', () => expect(violations).toEqual([]))

  it.each([
    'create-org',
    'change-org',
    'remove-org',
    'create-tenant',
    'change-tenant',
    'remove-tenant',
    'create-key',
    'change-key',
    'remove-key',
    'rotate-key',
    'revoke-secret',
  ])('has seen %s succeed', (kind) => expect(applied.get(kind) ?? 0).toBeGreaterThan(5))

  it.each([
    'role-allows',
    'own-org',
    'actor-is-live',
    'file-wins',
    'exists',
    'id-is-free',
    'id-is-plain',
    'text-is-plain',
    'value-is-valid',
    'within-bound',
    'org-is-empty',
    'org-has-weight',
    'slo-of-org',
    'hash-is-new',
    'two-live-secrets',
    'grace-within-week',
    'expiresAtMs-within-parent',
    'models-within-parent',
    'routes-within-parent',
    'bands-within-parent',
    'clientRanges-within-parent',
    'allowance-within-parent',
    'canManage-within-parent',
    'expiresAtMs-within-actor',
    'clientRanges-within-actor',
    'notBeforeAtMs-within-actor',
    'canManage-with-new-secret',
  ])('has seen the rule %s refuse', (rule) => expect(refused.get(rule) ?? 0).toBeGreaterThan(0))
})
