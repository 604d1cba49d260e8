import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { ArchiveUnavailable, type StoringTerms } from '../domain/archive.ts'
import type { Entry } from '../domain/entry.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { AnswerDraft } from '../lifecycle/archive-ports.ts'
import { DatabaseUnavailable } from '../store/database.ts'
import { MemoryArchiveStore } from '../store/memory-archive-store.ts'
import { WAITING, WAITING_OF_TENANT } from './archive-writer.ts'
import { LiveArchive } from './live-archive.ts'

const START_US = 1_800_000_000_000_000
const START_MS = START_US / 1_000

const tenantOf = (id: string, storing: Partial<StoringTerms> = {}): Tenant => ({
  id,
  orgId: id,
  weight: 1,
  slo: { name: 's', ttftUs: 1, interTokenUs: 1, totalUs: 1 },
  bands: ['standard'],
  allowance: {},
  bidMax: 0,
  contract: 'degrade',
  queueUsMax: 0,
  storing: { ttlS: 100, countMax: 1_000, bytesMax: 1e9, ...storing },
})

const draftOf = (n: number, more: Partial<AnswerDraft> = {}): AnswerDraft => ({
  id: `chatcmpl-${String(n).padStart(5, '0')}`,
  kind: 'chat.completion',
  createdAtMs: START_MS - 50_000 + n,
  model: 'm',
  metadata: {},
  document: '{}',
  input: '[]',
  ...more,
})

/** A store that the test can take away, stop, or let choke on one answer. */
class FakeStore extends MemoryArchiveStore {
  isAway = false
  poison = ''
  readonly batches: number[] = []
  #gate: Promise<void> = Promise.resolve()

  stop(): () => void {
    let open = (): void => {}
    this.#gate = new Promise((resolve) => {
      open = resolve
    })
    return open
  }

  #check(): void {
    if (this.isAway) throw new DatabaseUnavailable('The database does not answer.')
  }

  override async put(...[tenantId, answers]: Parameters<MemoryArchiveStore['put']>) {
    await this.#gate
    this.#check()
    if (answers.some(({ document }) => document === this.poison)) throw new Error(`bad: ${this.poison}`)
    this.batches.push(answers.length)
    return super.put(tenantId, answers)
  }

  override async find(...ask: Parameters<MemoryArchiveStore['find']>) {
    this.#check()
    return super.find(...ask)
  }

  override async eraseTenant(...ask: Parameters<MemoryArchiveStore['eraseTenant']>) {
    this.#check()
    return super.eraseTenant(...ask)
  }

  override async sweep(...ask: Parameters<MemoryArchiveStore['sweep']>) {
    this.#check()
    return super.sweep(...ask)
  }
}

function given(known: readonly string[] = ['a', 'b']) {
  const clock = new VirtualClock(START_US)
  const store = new FakeStore()
  const entries: Entry[] = []
  const complaints: string[] = []
  const census = {
    isKnown: true,
    ids: new Set(known),
    isComplete: () => census.isKnown,
    has: (id: string) => census.ids.has(id),
  }
  const archive = new LiveArchive({
    clock,
    store,
    journal: { record: (entry) => entries.push(entry) },
    complain: (text) => complaints.push(text),
    census,
    isInUse: false,
  })
  const told = (): string[] =>
    entries.flatMap((entry) => {
      if (entry.kind === 'archive-written') return [`${entry.outcome} ${entry.count}`]
      return entry.kind === 'archive-erased' ? [`erased ${entry.because} ${entry.count}`] : []
    })
  const countOf = async (tenantId: string): Promise<number> => {
    const page = await store.list(tenantId, {
      kind: 'chat.completion',
      limit: 10_000,
      order: 'asc',
      nowMs: 0,
      bytesMax: 1e9,
    })
    return page === 'no-such-after' ? 0 : page.items.length
  }
  return { clock, store, archive, census, complaints, told, countOf }
}

const rest = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await Promise.resolve()
}

describe('an archive that writes', () => {
  it('lets a client find its answer at once, though the write comes later', async () => {
    const { archive, store, told } = given()
    const open = store.stop()
    archive.keep(tenantOf('a'), draftOf(1))
    const found = archive.find('a', 'chat.completion', draftOf(1).id)
    await rest()
    expect(told()).toEqual([])
    open()
    expect(await found).toMatchObject({ tenantId: 'a', expiresAtMs: START_MS - 50_000 + 1 + 100_000 })
    expect(told()).toEqual(['kept 1'])
    expect(archive.waitingCount).toBe(0)
  })

  it('writes what comes together in batches, and the newest of one id', async () => {
    const { archive, store, countOf } = given()
    const open = store.stop()
    for (let n = 0; n < 40; n++) archive.keep(tenantOf('a'), draftOf(n % 39, { document: `{"n":${n}}` }))
    open()
    await archive.find('a', 'chat.completion', 'any')
    expect(store.batches).toEqual([1, 32, 7])
    expect(await countOf('a')).toBe(39)
    expect((await archive.find('a', 'chat.completion', draftOf(0).id))?.document).toBe('{"n":39}')
  })

  it('stores nothing of a tenant without terms, and nothing that is too large', async () => {
    const { archive, told } = given()
    expect(archive.whyNot(tenantOf('a'), 1)).toBeUndefined()
    const { storing: _storing, ...poor } = tenantOf('a')
    expect(archive.whyNot(poor, 1)).toBe('not-allowed')
    archive.keep(poor, draftOf(1))
    expect(archive.whyNot(tenantOf('a'), archive.answerBytesMax + 1)).toBe('too-large')
    expect(archive.whyNot(tenantOf('a', { bytesMax: 99 }), 100)).toBe('too-large')
    archive.keep(tenantOf('a'), draftOf(2, { document: 'x'.repeat(archive.answerBytesMax) }))
    await rest()
    expect(told()).toEqual(['not-allowed 1', 'too-large 1'])
  })

  it('bounds what waits, of one tenant and of all', async () => {
    const tenants = Array.from({ length: 10 }, (_, i) => `t${i}`)
    const { archive, store, told } = given(tenants)
    store.stop()
    for (let n = 0; n < WAITING_OF_TENANT.answersMax + 1; n++) archive.keep(tenantOf('t0'), draftOf(n))
    // The batch that is being written has left the line.
    expect(archive.whyNot(tenantOf('t0'), 1)).toBe('queue-full')
    expect(archive.whyNot(tenantOf('t1'), 1)).toBeUndefined()
    archive.keep(tenantOf('t0'), draftOf(999))
    expect(told()).toEqual(['queue-full 1'])
    for (const id of tenants.slice(1))
      for (let n = 0; n < WAITING_OF_TENANT.answersMax; n++) archive.keep(tenantOf(id), draftOf(n))
    expect(archive.waitingCount).toBe(WAITING.answersMax)
    expect(archive.whyNot(tenantOf('t9'), 1)).toBe('queue-full')
    const big = 3 * 1024 * 1024
    expect(archive.whyNot(tenantOf('new'), big)).toBe('queue-full')
  })

  it('bounds the bytes that wait', () => {
    const { archive, store, told } = given()
    store.stop()
    const document = 'x'.repeat(4_000_000)
    for (let n = 0; n < 5; n++) archive.keep(tenantOf('a'), draftOf(n, { document }))
    expect(archive.waitingCount).toBe(4)
    expect(told()).toEqual(['queue-full 1'])
  })

  it('makes room: the oldest answers of the tenant go', async () => {
    const { archive, told, countOf } = given()
    for (let n = 1; n <= 5; n++) archive.keep(tenantOf('a', { countMax: 3 }), draftOf(n))
    archive.keep(tenantOf('b', { countMax: 3 }), draftOf(1))
    expect(await archive.find('a', 'chat.completion', draftOf(2).id)).toBeUndefined()
    expect(await archive.find('a', 'chat.completion', draftOf(3).id)).toBeDefined()
    expect([await countOf('a'), await countOf('b')]).toEqual([3, 1])
    expect(told().filter((one) => one.startsWith('erased'))).toEqual(['erased made-room 2'])
  })
})

describe('an archive whose store is away', () => {
  it('takes nothing new, tells readers, and writes what it has when the store is back', async () => {
    const { archive, store, clock, told, complaints, countOf } = given()
    store.isAway = true
    archive.keep(tenantOf('a'), draftOf(1))
    const early = archive.find('a', 'chat.completion', draftOf(1).id)
    await expect(early).rejects.toThrow(ArchiveUnavailable)
    expect(archive.whyNot(tenantOf('b'), 1)).toBe('store-away')
    await expect(archive.find('b', 'chat.completion', 'x')).rejects.toThrow(ArchiveUnavailable)
    archive.keep(tenantOf('a'), draftOf(2))
    store.isAway = false
    await clock.run(START_US + secondsToUs(3))
    await rest()
    expect([await countOf('a'), told(), complaints.length]).toEqual([2, ['kept 2'], 1])
    expect(archive.whyNot(tenantOf('b'), 1)).toBeUndefined()
  })

  it('loses what has waited for too long, and says so', async () => {
    const { archive, store, clock, told } = given()
    store.isAway = true
    archive.keep(tenantOf('a'), draftOf(1))
    await clock.run(START_US + secondsToUs(40))
    await rest()
    expect(told()).toEqual(['store-away 1'])
    expect(archive.waitingCount).toBe(0)
  })

  it('writes the others of a batch without the one that the store cannot take, and quotes none of it', async () => {
    const { archive, store, told, complaints, countOf } = given()
    const open = store.stop()
    store.poison = '{"secret":"canary"}'
    for (let n = 0; n < 5; n++) archive.keep(tenantOf('a'), draftOf(n, n === 3 ? { document: store.poison } : {}))
    open()
    await archive.find('a', 'chat.completion', 'any')
    expect(await countOf('a')).toBe(4)
    expect(told().filter((one) => !one.startsWith('kept'))).toEqual(['store-away 1'])
    expect(archive.whyNot(tenantOf('a'), 1)).toBeUndefined()
    expect(complaints.join()).not.toContain('canary')
  })

  it('gives up within seconds when the process ends', async () => {
    const { archive, store, clock, told } = given()
    store.isAway = true
    archive.keep(tenantOf('a'), draftOf(1))
    await rest()
    const closed = archive.close()
    await clock.run(START_US + secondsToUs(5))
    await closed
    expect(told()).toEqual(['store-away 1'])
    archive.keep(tenantOf('a'), draftOf(2))
    expect(told()).toEqual(['store-away 1', 'store-away 1'])
  })
})

describe('an archive that forgets', () => {
  it('sweeps every minute what has ended, and nothing where nothing was ever written', async () => {
    const { archive, clock, store, told, countOf } = given()
    store.isAway = true
    await clock.run(START_US + secondsToUs(150))
    store.isAway = false
    const createdAtMs = START_MS + 150_000
    for (let n = 0; n < 450; n++) {
      archive.keep(tenantOf(n % 2 === 0 ? 'a' : 'b', { ttlS: 30 }), draftOf(n, { createdAtMs }))
    }
    await archive.find('a', 'chat.completion', 'any')
    await archive.find('b', 'chat.completion', 'any')
    expect(await countOf('a')).toBe(225)
    await clock.run(START_US + secondsToUs(241))
    await rest()
    expect([await countOf('a'), await countOf('b'), told().at(-1)]).toEqual([0, 0, 'erased expired 450'])
  })

  it('erases a removed tenant at once, with what waits', async () => {
    const { archive, store, census, told, countOf } = given()
    archive.keep(tenantOf('a'), draftOf(1))
    archive.keep(tenantOf('b'), draftOf(1))
    await archive.find('a', 'chat.completion', 'any')
    const open = store.stop()
    for (let n = 2; n < 40; n++) archive.keep(tenantOf('a'), draftOf(n))
    census.ids.delete('a')
    const erased = archive.eraseTenant('a')
    open()
    await erased
    expect([await countOf('a'), await countOf('b')]).toEqual([0, 1])
    expect(told().slice(2)).toContain('tenant-removed 37')
    archive.keep(tenantOf('a'), draftOf(50))
    await rest()
    expect([await countOf('a'), told().at(-1)]).toEqual([0, 'tenant-removed 1'])
  })

  it('keeps a removed tenant in mind while the store is away, also for a new tenant of the same name', async () => {
    const { archive, clock, store, census } = given()
    archive.keep(tenantOf('a'), draftOf(1))
    await archive.find('a', 'chat.completion', 'any')
    store.isAway = true
    census.ids.delete('a')
    await clock.run(START_US + secondsToUs(1))
    await archive.eraseTenant('a')
    census.ids.add('a')
    await expect(archive.find('a', 'chat.completion', draftOf(1).id)).rejects.toThrow(ArchiveUnavailable)
    store.isAway = false
    archive.keep(tenantOf('a'), draftOf(2, { createdAtMs: START_MS + 5_000 }))
    expect(await archive.find('a', 'chat.completion', draftOf(1).id)).toBeUndefined()
    expect(await archive.find('a', 'chat.completion', draftOf(2).id)).toBeDefined()
  })

  it('erases answers of tenants that nobody knows, an hour after the last one, once all tenants are known', async () => {
    const { archive, clock, store, census, told, countOf } = given()
    const orphan = { ...draftOf(1), tenantId: 'orphan', expiresAtMs: START_MS + 1e9 }
    await store.put('orphan', [orphan])
    archive.keep(tenantOf('a', { ttlS: 1e6 }), draftOf(1))
    await archive.find('a', 'chat.completion', 'any')
    census.isKnown = false
    await clock.run(START_US + secondsToUs(7_200))
    expect(await countOf('orphan')).toBe(1)
    await store.put('orphan', [{ ...orphan, createdAtMs: START_MS + 7_000_000 }])
    census.isKnown = true
    await clock.run(START_US + secondsToUs(10_000))
    expect(await countOf('orphan')).toBe(1)
    await clock.run(START_US + secondsToUs(10_800))
    await rest()
    expect([await countOf('orphan'), await countOf('a'), told().at(-1)]).toEqual([0, 1, 'erased tenant-removed 1'])
  })
})
