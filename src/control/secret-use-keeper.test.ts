import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { SecretUses } from '../policy/authority/secret-uses.ts'
import { DatabaseUnavailable } from '../store/database.ts'
import { MemoryTenancyStore } from '../store/memory-tenancy-store.ts'
import { SecretUseKeeper, USES_PER_WRITE } from './secret-use-keeper.ts'

class CountingStore extends MemoryTenancyStore {
  sizes: number[] = []
  fault: Error | undefined

  override async noteUses(noted: Parameters<MemoryTenancyStore['noteUses']>[0]): Promise<void> {
    if (this.fault !== undefined) throw this.fault
    this.sizes.push(noted.uses.size)
    await super.noteUses(noted)
  }
}

function start(isStored = true, uses = new SecretUses()) {
  const clock = new VirtualClock(secondsToUs(60_000))
  const store = new CountingStore()
  const complaints: string[] = []
  const parts = { clock, store, uses, isStored: () => isStored, complain: (text: string) => void complaints.push(text) }
  return { clock, store, complaints, keeper: new SecretUseKeeper(parts) }
}

const MINUTE_MS = 60_000
const FIRST_MS = 1_000 * MINUTE_MS

describe('the last uses of secrets', () => {
  it('are known at once, and stored a minute later, one row for each secret however often it was used', async () => {
    const { clock, store, keeper } = start()
    for (let i = 0; i < 100; i++) keeper.note('a')
    expect(await keeper.lastUses(['a', 'b'])).toEqual(new Map([['a', FIRST_MS]]))
    expect(store.sizes).toEqual([])
    await clock.run(clock.now() + secondsToUs(60))
    expect(store.sizes).toEqual([1])
    expect(await store.usesOf(['a'])).toEqual(new Map([['a', FIRST_MS]]))
    keeper.note('a')
    expect(await keeper.lastUses(['a'])).toEqual(new Map([['a', FIRST_MS + MINUTE_MS]]))
  })

  it('are written in batches, and without end of work while more come', async () => {
    const { clock, store, keeper } = start()
    for (let i = 0; i < 2.5 * USES_PER_WRITE; i++) keeper.note(`s${i}`)
    await clock.run(clock.now() + secondsToUs(60))
    expect(store.sizes).toEqual([USES_PER_WRITE, USES_PER_WRITE, USES_PER_WRITE / 2])
  })

  it('wait while the store is away, and other faults are told', async () => {
    const { clock, store, keeper, complaints } = start()
    store.fault = new DatabaseUnavailable('away')
    keeper.note('a')
    await clock.run(clock.now() + secondsToUs(60))
    expect(complaints).toEqual([])
    store.fault = new Error('odd')
    keeper.note('b')
    await clock.run(clock.now() + secondsToUs(60))
    expect(complaints).toHaveLength(1)
    store.fault = undefined
    await keeper.close()
    expect([...(await store.usesOf(['a', 'b'])).keys()]).toEqual(['a', 'b'])
  })

  it('stay in memory where no store is in use', async () => {
    const { clock, store, keeper } = start(false)
    keeper.note('a')
    await clock.run(clock.now() + secondsToUs(60))
    await keeper.close()
    expect(store.sizes).toEqual([])
    expect(await keeper.lastUses(['a'])).toEqual(new Map([['a', FIRST_MS]]))
  })

  it('go with their secrets', async () => {
    const { clock, store, keeper } = start()
    keeper.note('a')
    await clock.run(clock.now() + secondsToUs(60))
    keeper.note('a')
    keeper.forget('a')
    expect(await keeper.lastUses(['a'])).toEqual(new Map([['a', FIRST_MS]]))
    await keeper.close()
    expect(await store.usesOf(['a'])).toEqual(new Map())
  })

  it('are bounded: of more secrets than fit, those that come too late are not noted', async () => {
    const { keeper } = start(true, new SecretUses(2))
    for (const hash of ['a', 'b', 'c']) keeper.note(hash)
    expect([...(await keeper.lastUses(['a', 'b', 'c'])).keys()]).toEqual(['a', 'b'])
  })
})
