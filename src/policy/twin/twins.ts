import type { Instant } from '../../base/clock.ts'
import type { EngineSpeed } from '../../domain/engine-speed.ts'
import { BufferedStreams } from './buffered-streams.ts'
import { CacheTrust } from './cache-trust.ts'
import { EngineTwin } from './engine-twin.ts'
import { type KvCapacity, type KvHoldings, KvMeter, type KvReport } from './kv-meter.ts'
import type { Steps } from './times-under-load.ts'
import { TwinCeiling } from './twin-ceiling.ts'
import type { TwinMemory } from './twin-memory.ts'
import type { TwinPrior } from './twin-prior.ts'

/**
 * The twins of one pool's replicas: as many as there are replicas. Each learns by itself, because GPUs of a pool may
 * differ and one of them may be throttled; a replica that joins begins with what the most experienced one knows.
 *
 * As a speed it is the most experienced twin's: for questions about the pool, asked before a replica is chosen.
 */
export interface LearnedReplica {
  readonly twin: EngineTwin
  readonly ceiling: TwinCeiling
  readonly kv: KvMeter
}

/** Of the time that a twin says, what an engine may turn out to need; half of it after so long without a row. */
const HOPE = { trustedRatio: 0.5, untrustedRatio: 0.1, silenceUs: 2_000_000 }

export class Twins implements EngineSpeed, Steps {
  readonly #priors: readonly TwinPrior[]
  readonly #prior: TwinPrior
  readonly #sequencesMax: number
  /** What of the prefixes that its engines should hold they do hold. */
  readonly cache = new CacheTrust()
  readonly buffered = new BufferedStreams()
  readonly #replicas = new Map<string, LearnedReplica>()
  /** The capacities that `kvTokensMax` is of. Bound: the replicas. */
  readonly #weighed = new Map<string, KvCapacity | undefined>()
  #leading: EngineTwin
  #kvTokensMax = Number.POSITIVE_INFINITY

  constructor(options: { priors: readonly TwinPrior[]; prior: TwinPrior; sequencesMax: number }) {
    this.#priors = options.priors
    this.#prior = options.prior
    this.#sequencesMax = options.sequencesMax
    this.#leading = new EngineTwin(this.#priors, this.#prior)
  }

  of(replicaId: string): LearnedReplica {
    let known = this.#replicas.get(replicaId)
    if (known === undefined) {
      const twin = this.#leading.isTrusted ? this.#leading.offspring() : new EngineTwin(this.#priors, this.#prior)
      known = { twin, ceiling: new TwinCeiling(this.#sequencesMax), kv: new KvMeter() }
      this.#replicas.set(replicaId, known)
      this.#weighKv()
      if (this.#replicas.size === 1) this.#leading = twin
    }
    return known
  }

  /** The replica is an engine that another pool knows already: both go on with what is known of it. */
  adopt(replicaId: string, known: LearnedReplica): void {
    this.#replicas.set(replicaId, known)
    this.#weighKv()
    if (this.#replicas.size === 1) this.#leading = known.twin
    else this.learned(known.twin)
  }

  /** What it knew is lost, unless it was the last one: the next to join begins with that. */
  forget(replicaId: string): void {
    const known = this.#replicas.get(replicaId)
    this.#replicas.delete(replicaId)
    this.#weighKv()
    if (known?.twin !== this.#leading) return
    // A twin that learns no more must not speak for the others.
    const [first, ...others] = [...this.#replicas.values()].map(({ twin }) => twin)
    if (first === undefined) return
    this.#leading = first
    for (const twin of others) this.learned(twin)
  }

  /** What the next process should know of a replica; undefined where the twin is not believed yet. */
  memoryOf(replicaId: string): TwinMemory | undefined {
    const known = this.#replicas.get(replicaId)
    if (known === undefined || !known.twin.isTrusted) return undefined
    const { prior, decode, read, rows, sequencesSeen } = known.twin.view()
    const { tokenBudget } = known.twin
    const ceiling = known.ceiling.sequencesMax
    return { prior, decode, read, tokenBudget, rows, sequencesSeen, ceiling, kv: known.kv.capacity }
  }

  /** What the last process knew of a replica. False where more is known already. */
  remember(now: number, replicaId: string, memory: TwinMemory): boolean {
    const { twin, ceiling, kv } = this.of(replicaId)
    if (!twin.remember(memory)) return false
    ceiling.remember(memory.ceiling)
    if (memory.kv !== undefined && kv.capacity === undefined) kv.remember(now, memory.kv)
    this.#weighKv()
    return true
  }

  /** What the engine says of its memory, beside what we hold there. True when its known capacity has changed. */
  reportKv(now: number, replicaId: string, report: KvReport, holdings: KvHoldings): boolean {
    const { kv } = this.of(replicaId)
    const hasChanged = kv.report(now, report, holdings)
    // Another pool that has the engine, too, may have heard of the change first.
    if (hasChanged || kv.capacity !== this.#weighed.get(replicaId)) this.#weighKv()
    return hasChanged
  }

  /** The most that one replica's memory holds, as engines have told; Infinity while one of them has not. */
  get kvTokensMax(): number {
    return this.#kvTokensMax
  }

  #weighKv(): void {
    let most = this.#replicas.size === 0 ? Number.POSITIVE_INFINITY : 0
    this.#weighed.clear()
    for (const [replicaId, { kv }] of this.#replicas) {
      const { capacity } = kv
      this.#weighed.set(replicaId, capacity)
      most = Math.max(most, capacity?.isTold === true ? capacity.tokensMax : Number.POSITIVE_INFINITY)
    }
    this.#kvTokensMax = most
  }

  /** A twin has learned: the one with the most rows speaks for the pool. The last lesson may come after the replica left. */
  learned(twin: EngineTwin): void {
    if (twin.rows > this.#leading.rows && this.#has(twin)) this.#leading = twin
  }

  #has(twin: EngineTwin): boolean {
    for (const known of this.#replicas.values()) if (known.twin === twin) return true
    return false
  }

  all(): ReadonlyMap<string, LearnedReplica> {
    return this.#replicas
  }

  /**
   * The engine alone, as fast as it may be. What was learned may be wrong, and a request that is called infeasible shows
   * nothing: so a good part of the times is believed, less where little is known, and less the longer nothing was seen.
   */
  hopefulAt(now: Instant): EngineSpeed {
    const silentUs = Math.max(0, now - this.#leading.heardAt)
    const { trustedRatio, untrustedRatio, silenceUs } = HOPE
    const ratio = ((this.#leading.isTrusted ? trustedRatio : untrustedRatio) * silenceUs) / (silenceUs + silentUs)
    return {
      prefillUs: (uncachedTokens, cachedTokens) => this.prefillUs(uncachedTokens, cachedTokens) * ratio,
      tokenUs: (contextTokens) => this.tokenUs(contextTokens) * ratio,
    }
  }

  get tokenBudget(): number {
    return this.#leading.tokenBudget
  }

  meanTokenUs(sequences: number, contextTokens: number, prefillTokens: number): number {
    return this.#leading.meanTokenUs(sequences, contextTokens, prefillTokens)
  }

  prefillUs(uncachedTokens: number, cachedTokens: number): number {
    return this.#leading.prefillUs(uncachedTokens, cachedTokens)
  }

  tokenUs(contextTokens: number): number {
    return this.#leading.tokenUs(contextTokens)
  }

  readonly shareUs = (uncachedTokens: number, outputTokens: number): number =>
    this.#leading.shareUs(uncachedTokens, outputTokens)
}
