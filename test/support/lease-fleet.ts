import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Excess } from '../../bench/experiments/kit/shared-limits-world.ts'
import { eventually } from './eventually.ts'
import type { LeaseGatewayNews, LeaseGatewayOptions } from './lease-gateway.ts'

/** Several gateways' budgets, a process each, over one real store: what they admitted together, and the most over R·w. */
const SCRIPT = fileURLToPath(new URL('lease-gateway.ts', import.meta.url))

export interface LeaseFleetOptions {
  /** The address of the store as each gateway reaches it. */
  readonly urls: readonly string[]
  readonly kind?: 'server' | 'cluster'
  readonly cell: string
  readonly limit: LeaseGatewayOptions['limit']
  readonly requestTokens: number
  /** Part of the traffic at each gateway. */
  readonly shares: readonly number[]
  /** Offered ÷ the rate. */
  readonly load: number
  /** Words before the command of each gateway, as for a network namespace. */
  readonly prefixes?: readonly (readonly string[])[]
}

interface Member {
  readonly child: ChildProcess
  news: LeaseGatewayNews | undefined
}

export class LeaseFleet {
  readonly #options: LeaseFleetOptions
  readonly #spent: (readonly [at: number, amount: number])[] = []
  readonly #members: Member[] = []

  constructor(options: LeaseFleetOptions) {
    this.#options = options
    for (let i = 0; i < options.shares.length; i++) this.join(i)
  }

  /** Starts the gateway with this share of the traffic; again, under a new name, when it was killed. */
  join(i: number): void {
    const { urls, kind = 'server', cell, limit, requestTokens, shares, load, prefixes = [] } = this.#options
    const [command, ...words] = [...(prefixes[i] ?? []), process.execPath, SCRIPT]
    const child = spawn(command, words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const member: Member = { child, news: undefined }
    child.on('message', (news: LeaseGatewayNews) => {
      member.news = news
      this.#spent.push(...news.spent)
    })
    const perSecond = (limit.perMinute / 60) * load * (shares[i] ?? 0)
    const url = urls[i] ?? urls[0] ?? ''
    const options: LeaseGatewayOptions = {
      id: `g${i}-${child.pid}`,
      urls: kind === 'cluster' ? urls : [url],
      kind,
      cell,
      limit,
      requestTokens,
      perSecond,
    }
    child.send(options)
    this.#members[i] = member
  }

  async ready(count = this.#members.length): Promise<void> {
    await eventually('every gateway knows of all', () =>
      this.#members.every(({ news }) => news !== undefined && news.gatewayCount === count && !news.isSilent),
    )
  }

  isSilent(i: number): boolean {
    return this.#members[i]?.news?.isSilent ?? true
  }

  signal(i: number, name: NodeJS.Signals): void {
    this.#members[i]?.child.kill(name)
  }

  /** The most of admitted(w) − R·w over all windows. */
  get excess(): number {
    const excess = new Excess(this.#options.limit)
    for (const [at, amount] of this.#spent.toSorted(([a], [b]) => a - b)) excess.spend(at, amount)
    return excess.most
  }

  /** Tokens a second that were admitted between two instants, microseconds from now backwards. */
  rate(fromAt: number, toAt: number): number {
    let sum = 0
    for (const [at, amount] of this.#spent) if (at >= fromAt && at < toAt) sum += amount
    return (sum * 1_000_000) / (toAt - fromAt)
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#members.map(({ child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
        const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
        child.kill('SIGKILL')
        return ended
      }),
    )
  }
}
