import { Rng } from '../../src/base/rng.ts'
import type { SharePath } from '../../src/domain/share-path.ts'
import { Calibration, type CalibrationCell } from '../../src/policy/admission/calibration.ts'
import { PredictedWait } from '../../src/policy/admission/predicted-wait.ts'
import { DrainingPool } from './draining-pool.ts'
import { UnusedRoom } from './unused-room.ts'

/**
 * Arrivals, a rule that admits or refuses them, and a pool that shows who was right: the smallest loop in which the
 * predicted wait, the drain rate, the calibrated margin and the audit act on each other.
 */
export interface LoopShape {
  readonly seed: number
  readonly tenantCount: number
  /** Offered work ÷ what the pool can do. */
  readonly load: number
  readonly seconds: number
  /** How the wait is predicted: with everybody's backlog, the own lane only, or the whole queue. */
  readonly rule: 'fair-share' | 'own-lane' | 'whole-queue'
  readonly isCalibrated: boolean
  /** Tenant 0 sends this many times as much as each of the others. */
  readonly heavyFactor?: number
  readonly patienceUs?: number
  readonly meanCost?: number
}

export interface LoopResult {
  readonly offered: number
  readonly admitted: number
  readonly late: number
  readonly lateRatio: number
  readonly falseRejectRatio: number
  /** Work done in time ÷ what the pool could have done. */
  readonly goodput: number
  /** Refused ÷ offered, of the light tenants. */
  readonly lightRefusedRatio: number
  readonly biasRatio: number
  readonly marginRatio: number
}

const SLOTS = 64
const POOL_COST_PER_US = 0.08
/** A predicted cost is a median; what comes is lopsided, and a fifth more on average. */
const TRUE_COST_RATIO = 1.2
const CELL: CalibrationCell = { poolId: 'p', sloName: 's', promptTokens: 1_000 }

export function runAdmissionLoop(shape: LoopShape): LoopResult {
  return new AdmissionLoop(shape).run()
}

class AdmissionLoop {
  readonly #shape: Required<LoopShape>
  readonly #rng: Rng
  readonly #pool: DrainingPool
  readonly #wait = new PredictedWait(POOL_COST_PER_US)
  readonly #calibration = new Calibration()
  readonly #audit = new UnusedRoom()
  #offered = 0
  #admitted = 0
  #late = 0
  #workInTime = 0
  #lightOffered = 0
  #lightRefused = 0

  constructor(shape: LoopShape) {
    this.#shape = { heavyFactor: 1, patienceUs: 1_000_000, meanCost: 1_000, ...shape }
    this.#rng = Rng.stream(shape.seed, 'arrivals')
    const quantum = this.#shape.meanCost
    this.#pool = new DrainingPool({ slotCount: SLOTS, costPerUs: POOL_COST_PER_US, quantum })
  }

  run(): LoopResult {
    const { load, seconds, meanCost } = this.#shape
    const meanGapUs = (meanCost * TRUE_COST_RATIO) / (load * POOL_COST_PER_US)
    const until = seconds * 1_000_000
    for (let now = 0; now < until; ) {
      now += Math.max(1, Math.round(meanGapUs * exponential(this.#rng)))
      this.#pool.runUntil(now)
      if (this.#pool.waitingCount === 0 && this.#pool.freeSlots > 0) {
        this.#audit.sawUnusedRoom(now, this.#pool.freeSlots * meanCost)
      }
      this.#arrive(now)
    }
    this.#pool.runUntil(Number.MAX_SAFE_INTEGER)
    const audit = this.#audit.view(Number.MAX_SAFE_INTEGER)
    return {
      offered: this.#offered,
      admitted: this.#admitted,
      late: this.#late,
      lateRatio: this.#late / Math.max(1, this.#admitted),
      falseRejectRatio: audit.falseRejects / Math.max(1, audit.falseRejects + audit.rightRejects),
      goodput: this.#workInTime / (until * POOL_COST_PER_US),
      lightRefusedRatio: this.#lightRefused / Math.max(1, this.#lightOffered),
      ...this.#calibration.termsFor(CELL).ttft,
    }
  }

  #arrive(now: number): void {
    const { patienceUs, meanCost, isCalibrated } = this.#shape
    const tenant = this.#drawTenant()
    const cost = Math.max(50, Math.round(meanCost * (0.3 + 1.4 * this.#rng.next())))
    const trueCost = Math.max(20, cost * exponential(this.#rng) * TRUE_COST_RATIO)
    const share = shareOf(tenant)
    const ticket = { share, band: 'standard' as const, cost }
    this.#offered++
    if (tenant > 0) this.#lightOffered++
    const waitUs = this.#predict(now, ticket)
    const terms = isCalibrated ? this.#calibration.termsFor(CELL).ttft : { biasRatio: 1, marginRatio: 0.1 }
    if (waitUs * terms.biasRatio > patienceUs * (1 - terms.marginRatio)) {
      if (tenant > 0) this.#lightRefused++
      const heldUs = (cost * SLOTS) / POOL_COST_PER_US
      this.#audit.refused(now, { cost, startBy: now + patienceUs, heldUs })
      return
    }
    this.#admitted++
    const predicted = { waitUs, ttftUs: Math.max(1, waitUs), finishUs: Math.max(1, waitUs) }
    const patience = { ttftUs: patienceUs, finishUs: Number.POSITIVE_INFINITY }
    const learn = (at: number, ttftUs: number): void => {
      this.#calibration.begun(at, { ...CELL, predicted, patience, ttftUs })
      this.#calibration.ended(at, { ...CELL, predicted, patience, actual: { ttftUs, finishUs: ttftUs } })
    }
    let grantedAt = now
    this.#wait.join(now, ticket)
    this.#pool.offer(now, {
      tenantId: share.tenant.id,
      weight: 1,
      cost,
      trueCost,
      startBy: now + patienceUs,
      onStart: (at) => {
        grantedAt = at
        this.#wait.granted(at, ticket)
        learn(at, at - now)
        this.#workInTime += trueCost
      },
      onEnd: (at) => this.#wait.begun(at, { grantedAt, cost, replicaCount: 1 }),
      onExpire: (at) => {
        this.#late++
        this.#wait.withdrawn(ticket)
        learn(at, Number.POSITIVE_INFINITY)
      },
    })
  }

  #predict(
    now: number,
    ticket: { readonly share: SharePath; readonly band: 'standard'; readonly cost: number },
  ): number {
    const question = { ...ticket, hasRoom: this.#pool.freeSlots > 0, replicaCount: 1 }
    if (this.#shape.rule === 'fair-share') return this.#wait.waitUs(now, question)
    const perUs = this.#wait.drainPerUs(now, 1)
    const { rule } = this.#shape
    const own = this.#wait.ofTenant(ticket.share)
    return Math.ceil((rule === 'own-lane' ? own : this.#wait.backlogCost) / perUs)
  }

  #drawTenant(): number {
    const { tenantCount, heavyFactor } = this.#shape
    const pick = this.#rng.next() * (tenantCount - 1 + heavyFactor)
    return pick < heavyFactor ? 0 : 1 + Math.min(tenantCount - 2, Math.floor(pick - heavyFactor))
  }
}

function shareOf(tenant: number): SharePath {
  const node = { id: `t${tenant}`, weight: 1 }
  return { org: node, tenant: node, key: node }
}

const exponential = (rng: Rng): number => -Math.log(1 - rng.next())
