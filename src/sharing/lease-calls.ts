import type { Instant } from '../base/clock.ts'
import type { Account, ShardAnswer } from '../policy/sharing/lease-shard.ts'
import type { RoomAnswer, RoomAsk } from '../policy/sharing/room-grants.ts'
import type { Membership } from '../policy/sharing/shard-clock.ts'
import { LEASE_LIBRARY } from './lease-functions.ts'

/**
 * Calls of the functions in Redis: names, keys and arguments, and how replies are read. All keys of a call have one hash
 * tag, `{cell:s7}`, so that a cluster has them on one node.
 */
export interface LeaseCall {
  readonly name: string
  readonly keys: string[]
  readonly arguments: string[]
}

/** `tag` is the shard's hash tag. `at` is an instant for tests; the store's own clock counts if absent. */
export function takeCall(tag: string, member: Membership, accounts: readonly Account[], at?: Instant): LeaseCall {
  return {
    name: `${LEASE_LIBRARY}_take`,
    keys: [`{${tag}}:roster`, `{${tag}}:state`, ...accounts.map(({ name }) => `{${tag}}:b:${name}`)],
    arguments: [
      ...memberWords(member, at),
      ...accounts.flatMap((account) => [
        String(account.birth),
        String(account.perMinute),
        String(account.half),
        String(account.spent),
        String(account.granted),
        String(account.deposited),
        String(account.want),
        account.epoch,
        String(account.need),
      ]),
    ],
  }
}

export function readTakeReply(reply: unknown): ShardAnswer {
  const words = wordsOf(reply)
  return {
    ...headOf(words),
    gapUs: Number(words[3]),
    accounts: Array.from({ length: (words.length - HEAD_WORDS) / 2 }, (_, i) => ({
      granted: Number(words[HEAD_WORDS + 2 * i]),
      level: Number(words[HEAD_WORDS + 2 * i + 1]),
    })),
  }
}

export function roomCall(
  tag: string,
  member: Membership,
  told: { readonly topic: string; readonly text: string },
  asks: readonly RoomAsk[],
  at?: Instant,
): LeaseCall {
  return {
    name: `${LEASE_LIBRARY}_room`,
    keys: [
      `{${tag}}:roster`,
      `{${tag}}:state`,
      `{${tag}}:told:${told.topic}`,
      ...asks.map(({ name }) => `{${tag}}:r:${name}`),
    ],
    arguments: [
      ...memberWords(member, at),
      told.text,
      ...asks.flatMap(({ limit, held, granted, target, sequence }) =>
        [limit, held, granted, target, sequence].map(String),
      ),
    ],
  }
}

export function readRoomReply(reply: unknown, askCount: number): RoomAnswer {
  const words = wordsOf(reply)
  const reports = new Map<string, string>()
  for (let i = HEAD_WORDS + askCount; i + 1 < words.length; i += 2) reports.set(String(words[i]), String(words[i + 1]))
  return { ...headOf(words), granted: words.slice(HEAD_WORDS, HEAD_WORDS + askCount).map(Number), reports }
}

export const leaveCall = (tag: string, id: string): LeaseCall => ({
  name: `${LEASE_LIBRARY}_leave`,
  keys: [`{${tag}}:roster`],
  arguments: [id],
})

export const saltCall = (tag: string, offered: string): LeaseCall => ({
  name: `${LEASE_LIBRARY}_salt`,
  keys: [`{${tag}}:salt`],
  arguments: [offered],
})

export function readSaltReply(reply: unknown): string {
  if (typeof reply !== 'string' || reply === '') throw new Error('the store answered in an unknown form')
  return reply
}

/** Number of gateways, silent ones, epoch, gap. */
const HEAD_WORDS = 4

const headOf = (words: readonly unknown[]) => ({
  gatewayCount: Number(words[0]),
  silentCount: Number(words[1]),
  epoch: String(words[2]),
})

function wordsOf(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply) || reply.length < HEAD_WORDS) throw new Error('the store answered in an unknown form')
  return reply
}

const memberWords = ({ id, epoch, told, ttlMs, forgetMs }: Membership, at?: Instant): string[] => [
  id,
  epoch,
  String(told),
  String(ttlMs),
  String(forgetMs),
  at === undefined ? '' : String(at),
]
