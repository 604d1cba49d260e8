import { Rng } from '../../src/base/rng.ts'
import type { Estimate } from '../../src/domain/plan.ts'
import type { Key, Tenant } from '../../src/domain/tenant.ts'
import { Dispatcher } from '../../src/policy/dispatch/dispatcher.ts'
import type { Effect, Offer } from '../../src/policy/dispatch/offer.ts'
import type { FairnessName } from '../../src/policy/fairness/fairness.ts'
import { FixedLimit } from '../../src/policy/limits/fixed.ts'
import { makeEstimate, makeKey, makeTenant } from '../../test/support/demand.ts'

/**
 * A saturated pool for the benches of the dispatcher: so many tenants, so many tickets waiting, every slot held. One
 * cycle is one arrival and one return: an offer, the turn that the return makes possible, and its settlement. The
 * number that wait stays the same.
 */
export interface CrowdOptions {
  readonly tenantCount: number
  readonly queuedCount: number
  readonly replicaCount?: number
  readonly slotsPerReplica?: number
  readonly fairness?: FairnessName
}

const LENGTH_COUNT = 256

export class Crowd {
  readonly dispatcher: Dispatcher
  readonly #rng = Rng.stream(1, 'crowd')
  readonly #tenants: Tenant[] = []
  readonly #keys: Key[] = []
  readonly #estimates: Estimate[] = []
  /** Names of tickets that are free: making strings is not the dispatcher's work. */
  readonly #ticketIds: string[] = []
  /** Leases that are out, oldest first, in a ring. */
  readonly #leases: number[]
  #oldest = 0
  #ticketCount = 0
  #now = 1_700_000_000_000_000

  constructor(options: CrowdOptions) {
    const { tenantCount, queuedCount, replicaCount = 8, slotsPerReplica = 32 } = options
    const lanes = { depthMax: 1e9, engineUsMax: 1e18, agingUsPerBid: 1e6 }
    const limits = { queueRequestsMax: queuedCount + 10, lanes, fairness: options.fairness ?? 'deficit-round-robin' }
    this.dispatcher = new Dispatcher({ options: limits })
    for (let i = 0; i < tenantCount; i++) {
      this.#tenants.push(makeTenant(`tenant-${i}`, { weight: 1 + (i % 3), orgId: `org-${i % 100}` }))
      this.#keys.push(makeKey(`key-${i}`, `tenant-${i}`))
    }
    for (let i = 0; i < LENGTH_COUNT; i++) {
      this.#estimates.push(makeEstimate(50 + this.#rng.below(2_000), 10 + this.#rng.below(500)))
    }
    for (let i = 0; i < replicaCount; i++) {
      const replica = { id: `replica-${i}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
      this.dispatcher.addReplica(this.#now, { replica, limit: new FixedLimit({ sequencesMax: slotsPerReplica }) })
    }
    this.#leases = []
    const slotCount = replicaCount * slotsPerReplica
    for (let i = 0; i < slotCount + queuedCount + 10; i++) this.#ticketIds.push(`ticket-${1e6 + i}`)
    for (let i = 0; i < slotCount + queuedCount; i++) {
      const offered = this.dispatcher.offer(this.#now, this.nextOffer())
      for (const effect of offered.effects) {
        if (effect.kind !== 'granted') continue
        this.#leases.push(effect.lease.id)
        this.#ticketIds.push(effect.ticketId)
      }
    }
  }

  /** The next arrival: a random tenant, a random length. */
  nextOffer(): Offer {
    this.#now += 50
    const who = this.#rng.below(this.#tenants.length)
    const ticket = this.#ticketCount++
    return {
      ticketId: this.#ticketIds.pop() as string,
      poolId: 'pool',
      tenant: this.#tenants[who] as Tenant,
      key: this.#keys[who] as Key,
      band: ticket % 4 === 0 ? 'interactive' : 'standard',
      bid: ticket % 5,
      estimate: this.#estimates[ticket % LENGTH_COUNT] as Estimate,
      arrivedAt: this.#now,
      expiresAt: this.#now + 60_000_000_000 + this.#rng.below(1_000_000),
      isReady: true,
    }
  }

  offer(offer: Offer): void {
    this.dispatcher.offer(this.#now, offer)
  }

  /** The oldest lease comes back: settlement, and the scheduling decision that it makes possible. */
  release(): readonly Effect[] {
    const leases = this.#leases
    const leaseId = leases[this.#oldest] as number
    const effects = this.dispatcher.release(this.#now, leaseId, {
      cost: 700 + (leaseId % 900),
      ending: 'finished',
      firstTokenUs: 90_000,
    })
    for (const effect of effects) {
      if (effect.kind !== 'granted') continue
      leases[this.#oldest] = effect.lease.id
      this.#ticketIds.push(effect.ticketId)
    }
    this.#oldest = (this.#oldest + 1) % leases.length
    return effects
  }

  /**
   * Looks a random tenant's records up and changes nothing: what the same memory costs without any scheduling. A cycle
   * meets three tenants (the one that arrives, the one that returns, the one that goes).
   */
  lookUp(): number {
    let seen = 0
    for (let i = 0; i < 3; i++) {
      const who = this.#rng.below(this.#tenants.length)
      seen += this.dispatcher.backlogOf('pool', this.#tenants[who]?.id ?? '')?.queuedCount ?? 0
      seen += this.dispatcher.laneOf('pool', this.#keys[who]?.id ?? '', 'standard')?.cost ?? 0
    }
    return seen
  }

  cycle(): void {
    this.offer(this.nextOffer())
    this.release()
  }
}
