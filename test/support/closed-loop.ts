import { Timers } from '../../src/base/timers.ts'
import type { Estimate } from '../../src/domain/plan.ts'
import type { Band } from '../../src/domain/tenant.ts'
import { Dispatcher } from '../../src/policy/dispatch/dispatcher.ts'
import type { Effect } from '../../src/policy/dispatch/offer.ts'
import type { FairnessName } from '../../src/policy/fairness/fairness.ts'
import { FixedLimit } from '../../src/policy/limits/fixed.ts'
import { makeEstimate, makeKey, makeTenant } from './demand.ts'

/**
 * Clients with threads that ask, wait for the answer, think, and ask again, before a server with so many slots: the
 * shape of Kubernetes' `uniformScenario`. Virtual time; returns how many slots each client held on average, to be
 * compared with what max-min fairness would give it.
 */
export interface UniformClient {
  readonly tenant: string
  readonly org?: string
  readonly weight?: number
  readonly band?: Band
  readonly threads: number
  /** How long one answer takes; also its cost, a microsecond a unit. */
  readonly serviceUs: number
  readonly thinkUs: number
  /** Predicted ÷ true cost. */
  readonly predictedRatio?: number
  /** Its threads begin here. */
  readonly startAt?: number
  /** And do not ask again after this. */
  readonly endAt?: number
}

export interface UniformScenario {
  readonly clients: readonly UniformClient[]
  readonly slots: number
  readonly fairness: FairnessName
  readonly orgWeights?: Readonly<Record<string, number>>
}

export class ClosedLoop {
  readonly dispatcher: Dispatcher
  readonly #scenario: UniformScenario
  readonly #timers = new Timers()
  readonly #heldUs: number[]
  readonly #who = new Map<string, number>()
  #measureFrom = 0
  #now = 0
  #ticketCount = 0

  constructor(scenario: UniformScenario) {
    this.#scenario = scenario
    this.#heldUs = scenario.clients.map(() => 0)
    const lanes = { depthMax: 1e6, engineUsMax: 1e15, agingUsPerBid: 1e6 }
    this.dispatcher = new Dispatcher({ options: { fairness: scenario.fairness, queueRequestsMax: 1e6, lanes } })
    const replica = { id: 'server', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    this.dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: scenario.slots }) })
    for (const [orgId, weight] of Object.entries(scenario.orgWeights ?? {})) {
      this.dispatcher.reweigh({ kind: 'org', orgId, weight })
    }
    scenario.clients.forEach((client, index) => {
      for (let thread = 0; thread < client.threads; thread++) {
        // Not all at once, as in the original: 90 and 20 units apart.
        this.#at((client.startAt ?? 0) + 90 * thread + 20 * index, () => this.#ask(index))
      }
    })
  }

  /** Runs from `fromAt` (or where it stands) to `untilAt`; average slots of each client in between. */
  run(untilAt: number): number[] {
    this.#measureFrom = this.#now
    this.#heldUs.fill(0)
    const startedAt = this.#now
    for (let at = this.#timers.nextAt(); at !== undefined && at <= untilAt; at = this.#timers.nextAt()) {
      this.#now = at
      this.#timers.takeDue(at)?.()
    }
    this.#now = untilAt
    return this.#heldUs.map((us) => us / (untilAt - startedAt))
  }

  #at(at: number, run: () => void): void {
    this.#timers.add(at, run)
  }

  #ask(index: number): void {
    const client = this.#scenario.clients[index] as UniformClient
    if (client.endAt !== undefined && this.#now >= client.endAt) return
    const { tenant, org = tenant, weight = 1, band = 'standard', serviceUs, predictedRatio = 1 } = client
    const ticketId = `n${this.#ticketCount++}`
    this.#who.set(ticketId, index)
    const estimate: Estimate = { ...makeEstimate(0, 0), cost: serviceUs * predictedRatio, engineUs: serviceUs }
    const offered = this.dispatcher.offer(this.#now, {
      ticketId,
      poolId: 'pool',
      tenant: makeTenant(tenant, { orgId: org, weight }),
      key: makeKey(`${tenant}-${index}`, tenant),
      band,
      bid: 0,
      estimate,
      arrivedAt: this.#now,
      expiresAt: Number.POSITIVE_INFINITY,
      isReady: true,
    })
    this.#start(offered.effects)
  }

  #start(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'granted') throw new Error(`${effect.ticketId} ${effect.kind}`)
      const index = this.#who.get(effect.ticketId) as number
      this.#who.delete(effect.ticketId)
      const { serviceUs, thinkUs } = this.#scenario.clients[index] as UniformClient
      const grantedAt = this.#now
      this.#at(this.#now + serviceUs, () => {
        this.#heldUs[index] = (this.#heldUs[index] as number) + this.#now - Math.max(grantedAt, this.#measureFrom)
        const measured = { cost: serviceUs, ending: 'finished', firstTokenUs: undefined } as const
        this.#start(this.dispatcher.release(this.#now, effect.lease.id, measured))
        this.#at(this.#now + thinkUs, () => this.#ask(index))
      })
    }
  }
}

/** Weighted max-min fairness by water filling: nobody gets more than it asks, and the rest is shared by weight. */
export function fairShares(demands: readonly number[], weights: readonly number[], capacity: number): number[] {
  const shares = demands.map(() => 0)
  const open = new Set(demands.keys())
  let left = Math.min(
    capacity,
    demands.reduce((sum, demand) => sum + demand, 0),
  )
  while (left > 1e-9 && open.size > 0) {
    const weightSum = [...open].reduce((sum, i) => sum + (weights[i] as number), 0)
    const level = Math.min(
      ...[...open].map((i) => ((demands[i] as number) - (shares[i] as number)) / (weights[i] as number)),
    )
    const rise = Math.min(level, left / weightSum)
    for (const i of open) shares[i] = (shares[i] as number) + rise * (weights[i] as number)
    left -= rise * weightSum
    for (const i of open) if ((demands[i] as number) - (shares[i] as number) < 1e-9) open.delete(i)
  }
  return shares
}
