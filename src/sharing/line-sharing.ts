import type { CallLine } from '../base/call-line.ts'
import { secondsToUs } from '../base/clock.ts'
import type { Sharing } from '../lifecycle/sharing-ports.ts'
import type { Account, ShardAnswer } from '../policy/sharing/lease-shard.ts'
import type { RoomAnswer, RoomAsk } from '../policy/sharing/room-grants.ts'
import type { Membership } from '../policy/sharing/shard-clock.ts'

/**
 * The lease store of another process, asked over a line: the processes of one host share what their supervisor keeps in
 * memory. No answer in time is no answer, as from a Redis that is away.
 */
const CALL_US_MAX = secondsToUs(2)

type TakeCall = readonly [shard: number, member: Membership, accounts: readonly Account[]]
type RoomCall = readonly [member: Membership, told: RoomTold, asks: readonly RoomAsk[]]
interface RoomTold {
  readonly topic: string
  readonly text: string
}

export class LineSharing implements Sharing {
  readonly #line: CallLine
  /** Calls of this moment: a renewal asks for every due shard at once, and a message costs more than a call. */
  #gathered: TakeCall[] = []
  #answers: Promise<ReadonlyArray<ShardAnswer | undefined> | undefined> | undefined

  constructor(line: CallLine) {
    this.#line = line
  }

  async take(...call: TakeCall): Promise<ShardAnswer | undefined> {
    const place = this.#gathered.push(call) - 1
    this.#answers ??= Promise.resolve().then(() => {
      const calls = this.#gathered
      this.#gathered = []
      this.#answers = undefined
      return this.#ask('sharing-take', calls)
    })
    return (await this.#answers)?.[place]
  }

  room(...call: RoomCall): Promise<RoomAnswer | undefined> {
    return this.#ask('sharing-room', call)
  }

  salt(offered: string): Promise<string | undefined> {
    return this.#ask('sharing-salt', offered)
  }

  async leave(gatewayId: string): Promise<void> {
    await this.#ask('sharing-leave', gatewayId)
  }

  async #ask<T>(what: string, value: unknown): Promise<T | undefined> {
    try {
      return (await this.#line.ask(what, value, CALL_US_MAX)) as T
    } catch {
      return undefined
    }
  }
}

/** Answers a line from this process's lease store. The names of the gateways behind the line are told to `onMember`. */
export function offerSharing(line: CallLine, sharing: Sharing, onMember: (gatewayId: string) => void): void {
  line.on('sharing-take', (calls: readonly TakeCall[]) => {
    for (const [, member] of calls) onMember(member.id)
    return Promise.all(calls.map((call) => sharing.take(...call)))
  })
  line.on('sharing-room', (call: RoomCall) => {
    onMember(call[0].id)
    return sharing.room(...call)
  })
  line.on('sharing-salt', (offered: string) => sharing.salt(offered))
  line.on('sharing-leave', (gatewayId: string) => sharing.leave(gatewayId))
}
