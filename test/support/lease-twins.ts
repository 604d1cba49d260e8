import { expect } from 'vitest'
import { Rng } from '../../src/base/rng.ts'
import { type Account, LeaseShard } from '../../src/policy/sharing/lease-shard.ts'
import { type RoomAsk, RoomShard } from '../../src/policy/sharing/room-grants.ts'
import type { Membership } from '../../src/policy/sharing/shard-clock.ts'
import { makeRedisClient, type RedisClient } from '../../src/redis/redis-client.ts'
import {
  type LeaseCall,
  leaveCall,
  readRoomReply,
  readTakeReply,
  roomCall,
  takeCall,
} from '../../src/sharing/lease-calls.ts'
import { LEASE_FUNCTIONS } from '../../src/sharing/lease-functions.ts'

/**
 * The store's side in TypeScript against the functions in a real Redis: random calls from a seed, the same to both, and
 * every answer must be the same. Calls are late and repeated, accounts begin again, the clock steps forward and back, the
 * store is wiped, gateways leave.
 */
export interface TwinRun {
  readonly callCount: number
  readonly wipeCount: number
  readonly lateCount: number
  readonly lostCount: number
}

/** One sequence of calls on a shard of its own. Sequences are sent as pipelines: answers are compared at the end. */
export async function compareTwins(url: string, seed: number, options: { sequences: number; length: number }) {
  const client = makeRedisClient(url)
  await client.connect()
  try {
    await client.sendCommand(['FUNCTION', 'LOAD', 'REPLACE', LEASE_FUNCTIONS])
    const total = { callCount: 0, wipeCount: 0, lateCount: 0, lostCount: 0 }
    for (let i = 0; i < options.sequences; i++) {
      const run = await compareSequence(client, Rng.stream(seed, `leases ${i}`), `t${seed}.${i}`, options.length)
      for (const key of ['callCount', 'wipeCount', 'lateCount', 'lostCount'] as const) total[key] += run[key]
    }
    return total
  } finally {
    client.destroy()
  }
}

interface Side {
  epoch: string
  told: number
  readonly accounts: Map<string, Account>
}

const TTL_MS = 1_000
const pick = <T>(rng: Rng, of: readonly T[]): T => of[rng.below(of.length)] as T

async function compareSequence(client: RedisClient, rng: Rng, tag: string, length: number): Promise<TwinRun> {
  const forgetMs = pick(rng, [3_000, 30_000, 600_000])
  const gateways = ['a', 'b', 'c', 'd'].slice(0, 1 + rng.below(4))
  const sides = new Map<string, Side>(gateways.map((id) => [id, { epoch: '', told: 0, accounts: new Map() }]))
  const limit = { perMinute: pick(rng, [0, 1, 60, 599_999, 12_345_678]), half: pick(rng, [0, 1, 10, 5_000, 9_999_999]) }
  const earlier: { member: Membership; accounts: Account[] }[] = []
  const sent: Promise<unknown>[] = []
  const expected: unknown[] = []
  const send = (call: LeaseCall, read: (reply: unknown) => unknown): void => {
    sent.push(client.fCall(call.name, call).then(read))
  }
  let [leases, rooms] = [new LeaseShard(), new RoomShard()]
  let now = 1_800_000_000_000_000 + rng.below(1e9)
  const count = { callCount: 0, wipeCount: 0, lateCount: 0, lostCount: 0 }
  for (let step = 0; step < length; step++) {
    now += pick(rng, [0, 1, 777, 50_000, 250_000, 900_000, 1_000_001, 4_000_000, 40_000_000])
    if (rng.below(25) === 0) now -= pick(rng, [1, 100_000, 5_000_000])
    const id = pick(rng, gateways)
    const side = sides.get(id) as Side
    const member = { id, epoch: side.epoch, told: side.told, ttlMs: TTL_MS, forgetMs }
    const what = rng.below(40)
    count.callCount++
    if (what === 0) {
      ;[leases, rooms] = [new LeaseShard(), new RoomShard()]
      count.wipeCount++
      expected.push('wiped')
      sent.push(wipe(client, tag).then(() => 'wiped'))
    } else if (what === 1) {
      expected.push(Number(leases.leave(id)))
      send(leaveCall(tag, id), Number)
    } else if (what < 12) {
      const asks = Array.from({ length: rng.below(3) }, (_, i) => drawAsk(rng, `r${i}`, now))
      const told = { topic: 'p', text: `${id} says ${step}\n${rng.below(9)}` }
      expected.push(rooms.ask(now, member, told, asks))
      send(roomCall(`${tag}r`, member, told, asks, now), (reply) => readRoomReply(reply, asks.length))
    } else {
      const late = rng.below(8) === 0 ? pick(rng, [...earlier, undefined]) : undefined
      const asked = late ?? { member, accounts: drawAccounts(rng, side, now, limit) }
      if (late !== undefined) count.lateCount++
      const answer = leases.take(now, asked.member, asked.accounts)
      expected.push(answer)
      send(takeCall(tag, asked.member, asked.accounts, now), readTakeReply)
      earlier.push(asked)
      const isLost = rng.below(6) === 0
      if (isLost) count.lostCount++
      if (late === undefined && !isLost) {
        side.epoch = answer.epoch
        side.told = answer.gatewayCount
        asked.accounts.forEach((account, i) => {
          const granted = answer.accounts[i]?.granted ?? -1
          if (granted >= 0) side.accounts.set(account.name, { ...account, granted, epoch: answer.epoch })
        })
      }
    }
  }
  const answers = await Promise.all(sent)
  for (const [i, answer] of answers.entries()) expect(answer, `${tag}, call ${i}`).toEqual(expected[i])
  await wipe(client, tag)
  return count
}

async function wipe(client: RedisClient, tag: string): Promise<void> {
  const names = ['roster', 'state', 'b:x', 'b:y', 'told:p', 'r:r0', 'r:r1', 'r:r2']
  await client.del([tag, `${tag}r`].flatMap((of) => names.map((name) => `{${of}}:${name}`)))
}

function drawAccounts(rng: Rng, side: Side, now: number, limit: { perMinute: number; half: number }): Account[] {
  return ['x', 'y'].slice(0, rng.below(3)).map((name) => {
    const known = rng.below(30) === 0 ? undefined : side.accounts.get(name)
    const spent = (known?.spent ?? 0) + rng.below(1 + Math.ceil(limit.half / 4))
    const deposited = (known?.deposited ?? 0) + (rng.below(6) === 0 ? rng.below(5) : 0)
    const account = {
      name,
      birth: known?.birth ?? now,
      ...limit,
      spent: spent + deposited - (known?.deposited ?? 0),
      granted: (known?.granted ?? 0) + (rng.below(5) === 0 ? rng.below(7) : 0),
      deposited,
      want: rng.below(2 + Math.ceil(limit.half / 2)),
      epoch: known?.epoch ?? '',
      need: rng.below(10) === 0 ? rng.below(2 + limit.half) : 0,
    }
    side.accounts.set(name, account)
    return account
  })
}

const drawAsk = (rng: Rng, name: string, now: number): RoomAsk => ({
  name,
  limit: 8 + rng.below(60),
  held: rng.below(20),
  granted: rng.below(20),
  target: rng.below(64),
  sequence: now - (rng.below(10) === 0 ? 1_000_000 : 0),
})
