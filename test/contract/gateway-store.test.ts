import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GatewayStore } from '../../src/domain/gateways.ts'
import { MemoryGatewayStore } from '../../src/store/memory-gateway-store.ts'
import { SqlGatewayStore } from '../../src/store/sql-gateway-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'

/** What every store between gateways must do. */
describe.each(DATABASES)('gateways in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let store: GatewayStore
  beforeAll(async () => {
    opened = await open()
    store = opened.database === undefined ? new MemoryGatewayStore() : new SqlGatewayStore(opened.database)
    await store.beat('a')
  }, 60_000)
  afterAll(() => opened?.close())

  it('know of each other until they leave', async () => {
    expect(await store.beat('b')).toEqual({ otherIds: ['a'], questions: [] })
    expect((await store.beat('a')).otherIds).toEqual(['b'])
    await store.beat('c')
    await store.leave('c')
    expect((await store.beat('a')).otherIds).toEqual(['b'])
  })

  it('hear each other’s totals, the newest of each, on the models that they ask about', async () => {
    const told = (model: string, serial: number, body: unknown) => ({ model, serial, body })
    expect(await store.exchange('a', [told('m', 1, { pairs: 1 }), told('n', 1, { pairs: 9 })])).toEqual([])
    await store.exchange('a', [told('m', 3, { pairs: 3 })])
    await store.exchange('a', [told('m', 2, { pairs: 2 })])
    await store.exchange('a', [told('m', 3, { pairs: 4 })])
    expect(await store.exchange('b', [told('m', 1, { text: 'a \u0000 nul' })])).toEqual([
      { model: 'm', gatewayId: 'a', body: { pairs: 3 } },
    ])
    expect((await store.exchange('a', [told('m', 4, null)])).map(({ gatewayId }) => gatewayId)).toEqual(['b'])
    expect(await store.exchange('b', [told('m', 2, null)])).toEqual([
      { model: 'm', gatewayId: 'a', body: { pairs: 3 } },
    ])
  })

  it('see a question of another once, answer it once, and nothing is left of it', async () => {
    const question = { id: 'q1', kind: 'story', body: { ticketId: 'req_1' } }
    expect(await store.ask({ ...question, askedBy: 'a' })).toBe(true)
    expect((await store.beat('a')).questions).toEqual([])
    expect((await store.beat('b')).questions).toEqual([question])
    await store.answer('b', 'q1', 'first')
    await store.answer('b', 'q1', 'second')
    await store.answer('c', 'q1', '')
    expect((await store.beat('b')).questions).toEqual([])
    expect(await store.answersTo('q1')).toEqual(['first', ''])
    await store.drop('q1')
    await store.answer('d', 'q1', 'too late')
    expect(await store.answersTo('q1')).toEqual([])
  })

  it('have one secret of each name in common: the first that was offered', async () => {
    expect(await store.secret('console', 'first')).toBe('first')
    expect(await store.secret('console', 'second')).toBe('first')
    expect(await store.secret('other', 'third')).toBe('third')
    expect(await Promise.all(['x', 'y', 'z'].map((offered) => store.secret('race', offered)))).toSatisfy(
      (heard: readonly string[]) => new Set(heard).size === 1,
    )
  })

  it('have a bounded number of questions open', async () => {
    const asked: boolean[] = []
    for (let i = 0; i < 70; i++) asked.push(await store.ask({ id: `r${i}`, kind: 'story', body: {}, askedBy: 'a' }))
    expect(asked.filter(Boolean).length).toBe(64)
    for (let i = 0; i < 70; i++) await store.drop(`r${i}`)
    expect(await store.ask({ id: 'again', kind: 'story', body: {}, askedBy: 'a' })).toBe(true)
  })
})
