import { describe, expect, it } from 'vitest'
import { hashOf } from '../../../test/support/administration.ts'
import type { KeyRecord, OrgRecord, RecordSource, TenantRecord } from '../../domain/tenancy.ts'
import { KeyFinder } from './find-key.ts'
import { loadTree } from './load-tree.ts'
import { SecretUses } from './secret-uses.ts'

const org = (id: string, source: RecordSource, terms = {}): OrgRecord => ({ id, source, weight: 1, slos: ['s'], terms })
const tenant = (id: string, orgId: string, source: RecordSource): TenantRecord => ({
  id,
  orgId,
  source,
  weight: 1,
  slo: 's',
  bidMax: 0,
  terms: {},
  contract: 'degrade',
})
const key = (id: string, tenantId: string, hash: number, source: RecordSource, terms = {}): KeyRecord => ({
  id,
  tenantId,
  source,
  weight: 1,
  role: 'member',
  terms,
  secrets: [{ hash: hashOf(hash), createdAtMs: 0 }],
})

describe('the file and the store together', () => {
  const file = { orgs: [org('a', 'file')], tenants: [tenant('t', 'a', 'file')], keys: [key('k', 't', 1, 'file')] }
  const stored = {
    orgs: [org('a', 'registry'), org('b', 'registry', { expiresAtMs: 10 })],
    tenants: [tenant('t', 'b', 'registry'), tenant('u', 'b', 'registry'), tenant('v', 'gone', 'registry')],
    keys: [
      key('k', 't', 2, 'registry'),
      key('l', 't', 3, 'registry'),
      key('m', 'u', 1, 'registry'),
      key('n', 'v', 4, 'registry'),
      key('o', 'u', 5, 'registry', { notBeforeAtMs: 5 }),
    ],
  }
  const { tree, setAside } = loadTree(file, stored)
  const find = (hash: number, nowMs: number) => new KeyFinder().find(tree, hashOf(hash), nowMs)

  it('make one tree, in which the file wins', () => {
    expect(tree.tenants.get('t')?.orgId).toBe('a')
    expect(find(1, 0)).toMatchObject({ kind: 'found', found: { key: { id: 'k', source: 'file' } } })
    expect(find(3, 0)).toMatchObject({ found: { org: { id: 'a' }, tenant: { id: 't' }, key: { id: 'l' } } })
    expect(find(2, 0).kind).toBe('unknown')
  })

  it('set aside what the file has, what has no parent, and a secret in use', () => {
    expect(setAside.map(({ level, id, because }) => `${level} ${id} ${because}`)).toEqual([
      'org a in-file',
      'tenant t in-file',
      'tenant v no-parent',
      'key k in-file',
      'key m secret-in-use',
      'key n no-parent',
    ])
  })

  it('find a key only between the instants of its terms and its org’s', () => {
    expect([4, 5, 9, 10].map((nowMs) => find(5, nowMs).kind)).toEqual(['not-yet', 'found', 'found', 'expired'])
  })
})

describe('uses of secrets', () => {
  it('are told once a minute, and are not lost when the store fails', () => {
    const uses = new SecretUses()
    uses.note('a', 60_000)
    uses.note('a', 119_999)
    uses.note('b', 130_000)
    const taken = uses.take(10)
    expect([...taken]).toEqual([
      ['a', 60_000],
      ['b', 120_000],
    ])
    uses.note('a', 200_000)
    uses.putBack(taken)
    expect([...uses.take(10)]).toEqual([
      ['a', 180_000],
      ['b', 120_000],
    ])
    expect([...uses.take(10)]).toEqual([])
  })

  it('are bounded, and count what they could not note', () => {
    const uses = new SecretUses(2)
    for (const hash of ['a', 'b', 'c', 'a']) uses.note(hash, 600_000)
    uses.note('a', 700_000)
    expect([[...uses.take(10).keys()], uses.droppedCount]).toEqual([['a', 'b'], 1])
  })
})
