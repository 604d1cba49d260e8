import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { LeaderStore } from '../../src/domain/leader.ts'
import type { RegistryStore } from '../../src/domain/registry.ts'
import type { Database } from '../../src/store/database.ts'
import { MemoryLeaderStore } from '../../src/store/memory-leader-store.ts'
import { MemoryRegistryStore } from '../../src/store/memory-registry-store.ts'
import { SqlLeaderStore } from '../../src/store/sql-leader-store.ts'
import { SqlRegistryStore } from '../../src/store/sql-registry-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'
import { eventually } from '../support/eventually.ts'

/** What every store of leaders must do: one leader a name, a higher fence each term, and no write after its end. */
const LONG = 3_600_000_000
const edit = (name: string) => ({ kind: 'model', name, body: { name } }) as const

describe.each(DATABASES)('leaders in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let database: Database | undefined
  let store: LeaderStore
  let registry: RegistryStore
  beforeAll(async () => {
    opened = await open()
    database = opened.database
    const memory = new MemoryLeaderStore(new LiveClock())
    store = database === undefined ? memory : new SqlLeaderStore(database)
    registry =
      database === undefined ? new MemoryRegistryStore((fence) => memory.isHeld(fence)) : new SqlRegistryStore(database)
    await registry.revision()
  }, 60_000)
  afterAll(() => opened?.close())

  it('is led by the first that asks, and others are told by whom and for how long', async () => {
    expect(await store.acquire({ name: 'a', holder: 'one', termUs: LONG })).toEqual({ kind: 'held', fence: 1 })
    const other = await store.acquire({ name: 'a', holder: 'two', termUs: LONG })
    expect(other).toMatchObject({ kind: 'other', holder: 'one' })
    expect(other.kind === 'other' && other.leftUs > LONG / 2 && other.leftUs <= LONG).toBe(true)
    expect(await store.acquire({ name: 'b', holder: 'two', termUs: LONG })).toEqual({ kind: 'held', fence: 1 })
  })

  it('keeps the fence when a term is prolonged, and raises it when the same gateway begins again', async () => {
    expect(await store.renew({ name: 'a', holder: 'one', termUs: LONG, fence: 1 })).toEqual({ kind: 'held', fence: 1 })
    expect(await store.acquire({ name: 'a', holder: 'one', termUs: LONG })).toEqual({ kind: 'held', fence: 2 })
    expect(await store.renew({ name: 'a', holder: 'one', termUs: LONG, fence: 1 })).toMatchObject({ kind: 'other' })
    expect(await store.renew({ name: 'a', holder: 'two', termUs: LONG, fence: 2 })).toMatchObject({ holder: 'one' })
  })

  it('prolongs no term that is over, and gives the next one to whoever asks', async () => {
    expect(await store.acquire({ name: 'c', holder: 'one', termUs: 1 })).toEqual({ kind: 'held', fence: 1 })
    await eventually(
      'the term is over',
      async () => (await store.acquire({ name: 'c', holder: 'two', termUs: LONG })).kind === 'held',
    )
    expect(await store.renew({ name: 'c', holder: 'one', termUs: LONG, fence: 1 })).toMatchObject({ holder: 'two' })
    expect(await store.renew({ name: 'c', holder: 'two', termUs: LONG, fence: 2 })).toEqual({ kind: 'held', fence: 2 })
  })

  it('is free when the leader gives up, which nobody else can do for it', async () => {
    await store.release({ name: 'c', holder: 'one', number: 1 })
    expect(await store.acquire({ name: 'c', holder: 'one', termUs: LONG })).toMatchObject({ holder: 'two' })
    await store.release({ name: 'c', holder: 'two', number: 2 })
    expect(await store.acquire({ name: 'c', holder: 'one', termUs: LONG })).toEqual({ kind: 'held', fence: 3 })
  })

  it('of many that ask at once one leads', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => store.acquire({ name: 'd', holder: `g${i}`, termUs: LONG })),
    )
    expect(answers.filter(({ kind }) => kind === 'held').length).toBe(1)
  })

  it('lets the registry be written with a fence that holds, and with no other', async () => {
    const write = { atMs: 1, by: 'judge', because: 'a test' }
    const one = { name: 'w', holder: 'one', number: 1 }
    const { revision } = await registry.load()
    expect(await registry.write({ ...write, expectedRevision: revision, edits: [edit('x')], fence: one })).toBe(
      'deposed',
    )
    await store.acquire({ name: 'w', holder: 'one', termUs: LONG })
    expect(await registry.write({ ...write, expectedRevision: revision, edits: [edit('x')], fence: one })).toBe(
      revision + 1,
    )
    expect(await registry.write({ ...write, expectedRevision: revision, edits: [edit('y')], fence: one })).toBe('stale')
    await store.release(one)
    expect(await store.acquire({ name: 'w', holder: 'two', termUs: LONG })).toEqual({ kind: 'held', fence: 2 })
    const late = { ...write, expectedRevision: revision + 1, edits: [edit('late')] }
    expect(await registry.write({ ...late, fence: one })).toBe('deposed')
    expect(await registry.write({ ...late, fence: { ...one, number: 2 } })).toBe('deposed')
    expect((await registry.load()).entries.map(({ name }) => name)).toEqual(['x'])
    expect(await registry.write({ ...late, fence: { ...one, holder: 'two', number: 2 } })).toBe(revision + 2)
  })

  it('refuses a leader whose term is over, although nobody has followed it', async () => {
    await store.acquire({ name: 'e', holder: 'one', termUs: 1 })
    const fence = { name: 'e', holder: 'one', number: 1 }
    const { revision } = await registry.load()
    const write = { expectedRevision: revision, atMs: 1, by: 'judge', because: 'a test', edits: [edit('z')], fence }
    await eventually('its term is over', async () => {
      const answer = await store.renew({ name: 'e', holder: 'one', termUs: 1, fence: 1 })
      return answer.kind === 'other'
    })
    expect(await registry.write(write)).toBe('deposed')
  })
})
