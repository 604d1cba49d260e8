import { describe, expect, it } from 'vitest'
import { ROOT } from '../../../test/support/administration.ts'
import type { TreeEdit } from '../../domain/tenancy.ts'
import { applyEdit } from './apply-edit.ts'
import { emptyTree, type TenancyTree } from './tree.ts'

function treeAfter(...edits: readonly object[]): TenancyTree {
  return edits.reduce((tree: TenancyTree, edit) => {
    const result = applyEdit(tree, ROOT, { because: 'test', ...edit } as TreeEdit, 0)
    if (result.kind === 'refused') throw new Error(result.refusal.because)
    return result.tree
  }, emptyTree({}))
}

describe('the terms of a tenant’s answer cache', () => {
  const S = 1_000_000
  const GOOD = { similarityMin: 0.9, temperatureMax: 0.5, ttlUs: 60 * S, checkRatio: 0.01 }
  const tree = treeAfter(
    { kind: 'create-org', id: 'acme', slos: ['fast'] },
    { kind: 'create-tenant', id: 'shop', orgId: 'acme' },
  )

  function ruleOf(term: string, value: number): string {
    const edit = { kind: 'change-tenant', id: 'shop', because: 'test', answerCache: { ...GOOD, [term]: value } }
    const result = applyEdit(tree, ROOT, edit as unknown as TreeEdit, 0)
    return result.kind === 'refused' ? result.refusal.rule : 'applied'
  }

  it.each([
    ['similarityMin', 0, 1],
    ['temperatureMax', 0, 2],
    ['ttlUs', S, 365 * 24 * 3_600 * S],
    ['checkRatio', 0, 1],
  ])('%s is from %s up to %s', (term, least, most) => {
    for (const value of [least, (least + most) / 2, most]) expect(ruleOf(term, value)).toBe('applied')
    for (const value of [least - 0.1, most + 0.1, Number.NaN]) expect(ruleOf(term, value)).toBe('value-is-valid')
  })
})
