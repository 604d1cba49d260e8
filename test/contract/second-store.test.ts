import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { LeaderStore } from '../../src/domain/leader.ts'
import type { BillHour, SecondStore } from '../../src/domain/second-store.ts'
import { MemoryLeaderStore } from '../../src/store/memory-leader-store.ts'
import { MemorySecondStore } from '../../src/store/memory-second-store.ts'
import { SqlLeaderStore } from '../../src/store/sql-leader-store.ts'
import { SqlSecondStore } from '../../src/store/sql-second-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'

/** What every store between the gateways and the owner of their seconds must do. */
describe.each(DATABASES)('seconds in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let store: SecondStore
  let leaders: LeaderStore
  beforeAll(async () => {
    opened = await open()
    const memory = new MemoryLeaderStore(new LiveClock())
    leaders = opened.database === undefined ? memory : new SqlLeaderStore(opened.database)
    store =
      opened.database === undefined
        ? new MemorySecondStore((fence) => memory.isHeld(fence))
        : new SqlSecondStore(opened.database)
    await store.gather()
  }, 60_000)
  afterAll(() => opened?.close())

  const fenceOf = async (holder: string) => {
    const answer = await leaders.acquire({ name: 'duties', holder, termUs: 600_000_000 })
    if (answer.kind !== 'held') throw new Error(`${answer.holder} leads`)
    return { name: 'duties', holder, number: answer.fence }
  }
  const told = (serial: number) => ({ serial, body: `report ${serial}` })
  const bill = (replicaId: string, hour: number, billNano: number): BillHour => ({
    replicaId,
    poolId: 'p',
    hour,
    seconds: 1,
    billNano,
    tenantsNano: billNano - 21,
    tenantsIdleNano: 1,
    idleNano: 2,
    wasteNano: 3,
    platformNano: 4,
    crashedNano: 5,
    lateNano: 6,
  })

  it('hands every report to the leader once, and its answer to whoever told it, until that was heard', async () => {
    expect(await store.exchange({ reporterId: 'a', told: [told(1), told(2)], heard: [] })).toEqual([])
    // The answer to the first call was lost.
    await store.exchange({ reporterId: 'a', told: [{ serial: 2, body: 'another' }], heard: [] })
    await store.exchange({ reporterId: 'b', told: [told(1)], heard: [] })
    const { revision, state, reports } = await store.gather()
    expect([revision, state]).toEqual([0, undefined])
    expect(reports.map(({ reporterId, body }) => `${reporterId}: ${body}`).toSorted()).toEqual([
      'a: report 1',
      'a: report 2',
      'b: report 1',
    ])
    const fence = await fenceOf('leader')
    const answers = [{ reporterId: 'a', serial: 1, body: 'charges' }]
    expect(await store.close({ fence, revision, state: 'one', bills: [], answers })).toBe(true)
    expect((await store.gather()).reports).toHaveLength(2)
    expect(await store.exchange({ reporterId: 'a', told: [], heard: [] })).toEqual([{ serial: 1, body: 'charges' }])
    expect(await store.exchange({ reporterId: 'a', told: [], heard: [] })).toEqual([{ serial: 1, body: 'charges' }])
    expect(await store.exchange({ reporterId: 'a', told: [], heard: [1] })).toEqual([])
    expect(await store.exchange({ reporterId: 'a', told: [], heard: [] })).toEqual([])
  })

  it('closes nothing twice: not for a leader that was deposed, nor for a closing that comes again', async () => {
    const fence = await fenceOf('leader')
    const { revision, state } = await store.gather()
    expect(state).toBe('one')
    const closing = { fence, revision, state: 'two', answers: [] }
    expect(await store.close({ ...closing, bills: [bill('r1', 7, 100), bill('r2', 7, 200)] })).toBe(true)
    expect(await store.close({ ...closing, bills: [bill('r1', 7, 100)] })).toBe(false)
    const next = await store.gather()
    expect(next).toMatchObject({ revision: revision + 1, state: 'two' })
    const deposed = { ...fence, number: fence.number - 1 }
    const later = { ...closing, revision: next.revision, state: 'three', bills: [bill('r1', 7, 50)] }
    expect(await store.close({ ...later, fence: deposed })).toBe(false)
    expect(await store.close(later)).toBe(true)
    expect(await store.bills(7, 8)).toEqual([
      {
        ...bill('r1', 7, 150),
        seconds: 2,
        tenantsNano: 108,
        tenantsIdleNano: 2,
        idleNano: 4,
        wasteNano: 6,
        platformNano: 8,
        crashedNano: 10,
        lateNano: 12,
      },
      bill('r2', 7, 200),
    ])
    expect(await store.bills(8, 9)).toEqual([])
  })
})
