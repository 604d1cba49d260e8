import { beforeEach, describe, expect, it } from 'vitest'
import type { CloudCredential, CloudToken } from '../wire/cloud-credential.ts'
import { CredentialError, FRESH_CREDENTIAL, FreshCredential } from './fresh-credential.ts'

const HOUR = 3_600_000
const tick = () => new Promise(setImmediate)

let now = 0
let fetches: Array<{ give: (lifeMs?: number) => void; fail: () => void }>
let timers: Array<() => void>
let fresh: FreshCredential

const tokenOf = async (taken: CloudCredential | Promise<CloudCredential>) => ((await taken) as CloudToken).token

beforeEach(() => {
  now = 1_000_000
  fetches = []
  timers = []
  fresh = new FreshCredential({
    now: () => now,
    after: (_ms, callback) => {
      timers.push(callback)
      return () => timers.splice(timers.indexOf(callback), 1)
    },
    fetch: () =>
      new Promise((resolve, reject) => {
        const token = `token-${fetches.length + 1}`
        fetches.push({
          give: (lifeMs) =>
            resolve({ kind: 'token', token, endsAtMs: lifeMs === undefined ? undefined : now + lifeMs }),
          fail: () => reject(new CredentialError('the source is closed')),
        })
      }),
  })
})

/** Held: token-1, for so long. */
async function holding(lifeMs: number | undefined): Promise<void> {
  const taken = fresh.take()
  fetches[0]!.give(lifeMs)
  await taken
}

describe('a credential that ends', () => {
  it('is fetched once for all who wait', async () => {
    const all = [fresh.take(), fresh.take(), fresh.take()].map(tokenOf)
    fetches[0]!.give(HOUR)
    expect(await Promise.all(all)).toEqual(['token-1', 'token-1', 'token-1'])
    expect(fetches).toHaveLength(1)
    expect(timers).toEqual([])
    expect(fresh.take()).toMatchObject({ token: 'token-1' })
  })

  it('is renewed before its end, once, and is used meanwhile', async () => {
    await holding(HOUR)
    now += 0.79 * HOUR
    expect(fresh.take()).toMatchObject({ token: 'token-1' })
    expect(fetches).toHaveLength(1)
    now += 0.02 * HOUR
    expect([fresh.take(), fresh.take()]).toMatchObject([{ token: 'token-1' }, { token: 'token-1' }])
    expect(fetches).toHaveLength(2)
    fetches[1]!.give(HOUR)
    await tick()
    expect(fresh.take()).toMatchObject({ token: 'token-2' })
    expect(fresh.secrets).toEqual(['token-2', 'token-1'])
  })

  it('is not used in its last half minute, whatever became of the next', async () => {
    await holding(HOUR)
    now += HOUR - FRESH_CREDENTIAL.marginMs
    const taken = fresh.take()
    expect(taken).toBeInstanceOf(Promise)
    fetches[1]!.give(HOUR)
    expect(await tokenOf(taken)).toBe('token-2')
  })

  it('that has ended when it comes is none', async () => {
    const taken = fresh.take()
    fetches[0]!.give(0)
    await expect(taken).rejects.toThrow('has ended already')
  })

  it('without an end is asked for again every minute, and used until there is another', async () => {
    await holding(undefined)
    now += FRESH_CREDENTIAL.unstatedMs
    expect(fresh.take()).toMatchObject({ token: 'token-1' })
    fetches[1]!.fail()
    await tick()
    now += 24 * HOUR
    expect(fresh.take()).toMatchObject({ token: 'token-1' })
    fetches[2]!.give()
    await tick()
    expect(fresh.take()).toMatchObject({ token: 'token-3' })
  })

  it('is waited for no longer than the bound', async () => {
    const taken = fresh.take()
    timers[0]!()
    await expect(taken).rejects.toThrow('did not answer in time')
    fetches[0]!.give(HOUR)
    await tick()
    expect(fresh.take()).toMatchObject({ token: 'token-1' })
  })
})

describe('a source that fails', () => {
  it('is left alone, twice as long each time, up to a minute', async () => {
    const pauses: number[] = []
    for (let i = 0; i < 9; i++) {
      const taken = fresh.take()
      fetches[i]!.fail()
      await expect(taken).rejects.toThrow('the source is closed')
      const failedAt = now
      while (fetches.length === i + 1) {
        now += 500
        const again = fresh.take() as Promise<CloudCredential>
        again.catch(() => {})
        if (fetches.length === i + 1) await expect(again).rejects.toBeInstanceOf(CredentialError)
      }
      pauses.push(now - failedAt)
    }
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  it('does not take away what is held', async () => {
    await holding(HOUR)
    now += 0.9 * HOUR
    void fresh.take()
    fetches[1]!.fail()
    await tick()
    expect(fresh.take()).toMatchObject({ token: 'token-1' })
  })
})

describe('a credential that is refused', () => {
  it('is replaced once for all that it was refused for', async () => {
    await holding(HOUR)
    const refused = fresh.take() as CloudCredential
    now += FRESH_CREDENTIAL.replaceMs
    const next = [fresh.replace(refused), fresh.replace(refused)]
    expect(fetches).toHaveLength(2)
    fetches[1]!.give(HOUR)
    expect(await Promise.all(next)).toMatchObject([{ token: 'token-2' }, { token: 'token-2' }])
    // Refused late: there is another one already.
    expect(await fresh.replace(refused)).toMatchObject({ token: 'token-2' })
    expect(fetches).toHaveLength(2)
  })

  it('stands when it is new, when there is no other, and when the source fails', async () => {
    await holding(HOUR)
    const refused = fresh.take() as CloudCredential
    expect(await fresh.replace(refused)).toBeUndefined()
    expect(fetches).toHaveLength(1)
    now += FRESH_CREDENTIAL.replaceMs
    const next = fresh.replace(refused)
    fetches[1]!.fail()
    expect(await next).toBeUndefined()
  })
})
