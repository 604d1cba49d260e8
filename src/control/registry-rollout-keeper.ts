import { type CancelTimer, type Clock, type Instant, msToUs, secondsToUs } from '../base/clock.ts'
import type { Fence } from '../domain/leader.ts'
import type { RegistryBody, RegistryEdit } from '../domain/registry.ts'
import type { AdminAnswer } from '../gateway/fleet-admin.ts'
import type { Journal, KeepReason, Leadership, RolloutKeeper } from '../lifecycle/ports.ts'
import { isAutomatic } from '../lifecycle/rollout/change-rollout.ts'
import type { ModelRolloutMemory } from '../policy/rollout/model-rollout.ts'
import { LeadershipLost, type RegistryReason } from './live-registry.ts'

/**
 * Keeps in the registry how far each rollout has got. A write that fails is tried again, after a longer time each time,
 * until it succeeds or the process ends. Only the newest memory of every model waits, so the memory that an outage of the
 * store costs is bounded by the number of models. Every write, failure and loss is journalled, and counted from there.
 *
 * What the platform decided by itself is written with the leader's fence. A gateway that took back a canary while nobody
 * was known to lead waits with the write until it leads; when another one does, that one decides, with the evidence of
 * all.
 */
export interface KeeperParts {
  readonly clock: Clock
  readonly journal: Journal
  /** Changes the registry; calls `editsOf` when it is this change's turn. */
  readonly write: (editsOf: () => readonly RegistryEdit[], reason: RegistryReason) => Promise<AdminAnswer>
  /** Absent: this gateway is the only one. */
  readonly leadership?: Leadership
  /** What the platform decided here does not hold: another gateway leads. The registry says what does. */
  readonly onOverruled?: (model: string) => void
}

/** Time to the second try: a database that restarts is back within seconds. */
const RETRY_US = secondsToUs(1)
/** Time between two tries at most: a store that is back is noticed within half a minute. */
const RETRY_US_MAX = secondsToUs(30)
/** Time for the last writes when the process ends; a store that does not answer must not hold up the shutdown. */
const FLUSH_US_MAX = secondsToUs(5)
/** Time between two tries while the process ends. */
const FLUSH_RETRY_US = msToUs(250)

interface Pending {
  readonly memory: ModelRolloutMemory
  readonly reason: KeepReason
  readonly waiters: Array<(answer: AdminAnswer) => void>
}

export class RegistryRolloutKeeper implements RolloutKeeper {
  readonly #parts: KeeperParts
  /** Memories by model; the first one is written next. */
  readonly #pending = new Map<string, Pending>()
  #inHand: Pending | undefined
  #failureCount = 0
  #cancelRetry: CancelTimer | undefined
  #isClosed = false

  constructor(parts: KeeperParts) {
    this.#parts = parts
  }

  keep(model: string, memory: ModelRolloutMemory, reason: KeepReason): void {
    const before = this.#pending.get(model)
    const waiters = before === undefined || before === this.#inHand ? [] : before.waiters
    this.#pending.set(model, { memory, reason, waiters })
    void this.#write()
  }

  /** The memory of this model that is not written yet. */
  pendingOf(model: string): ModelRolloutMemory | undefined {
    return this.#pending.get(model)?.memory
  }

  /** Whether the platform decided what waits for this model, and no person. */
  isPendingAutomatic(model: string): boolean {
    const pending = this.#pending.get(model)
    return pending !== undefined && isAutomatic(pending.reason.by)
  }

  /** The leader is another one, or this gateway: what waits for that is written now, or given up. */
  leaderChanged(): void {
    const role = this.#parts.leadership?.role()
    if (role?.kind === 'leads') void this.#write()
    if (role?.kind !== 'follows') return
    for (const [model, pending] of this.#pending)
      if (this.#isWaiting(pending) && pending !== this.#inHand) this.#overrule(model, pending, 'another gateway leads')
  }

  /** Drops the memory of this model that waits: the registry has a better one. */
  forget(model: string): void {
    this.#settle(model, this.#pending.get(model), { kind: 'changed', revision: undefined })
  }

  /** Resolves after the next try to write this model's memory. After a refusal the keeper goes on trying. */
  whenTried(model: string): Promise<AdminAnswer> {
    const pending = this.#pending.get(model)
    if (pending === undefined) return Promise.resolve({ kind: 'changed', revision: undefined })
    return new Promise((resolve) => {
      pending.waiters.push(resolve)
    })
  }

  /** Writes the memories that wait, as far as the store answers within `FLUSH_US_MAX`. */
  async close(): Promise<void> {
    const { clock } = this.#parts
    this.#isClosed = true
    this.#cancelRetry?.()
    const endsAt = clock.now() + FLUSH_US_MAX
    while (this.#next() !== undefined && clock.now() < endsAt) {
      await this.#writeUntil(endsAt)
      if (this.#next() !== undefined) await clock.sleep(Math.max(1, Math.min(FLUSH_RETRY_US, endsAt - clock.now())))
    }
    for (const [model, pending] of this.#pending) {
      const because = 'the process ended before the registry could be written'
      this.#tell(model, 'lost', because)
      this.#settle(model, pending, unwritten(because))
    }
  }

  #writeUntil(endsAt: Instant): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.at(endsAt, resolve)
      void this.#write().finally(() => {
        cancel()
        resolve()
      })
    })
  }

  /** Writes one memory after the other, until none waits or one fails. */
  async #write(): Promise<void> {
    if (this.#inHand !== undefined) return
    this.#cancelRetry?.()
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [model, pending] = next
      this.#inHand = pending
      const answer = await this.#tryWrite(model, pending)
      this.#inHand = undefined
      if (answer === 'overruled') {
        this.#overrule(model, pending, 'the term of this leader was over')
        continue
      }
      if (answer.kind === 'refused') {
        this.#failed(model, pending, answer.refusal.because)
        return
      }
      this.#failureCount = 0
      if (answer.revision !== undefined) this.#tell(model, 'kept', `revision ${answer.revision}`)
      this.#settle(model, pending, answer)
    }
  }

  #next(): [string, Pending] | undefined {
    return [...this.#pending].find(([, pending]) => !this.#isWaiting(pending))
  }

  /** Decided by the platform while nobody was known to lead, and this gateway still does not. */
  #isWaiting({ reason: { by, fence } }: Pending): boolean {
    const { leadership } = this.#parts
    if (leadership === undefined || fence !== undefined || !isAutomatic(by)) return false
    return leadership.role().kind !== 'leads'
  }

  #fenceOf({ reason: { by, fence } }: Pending): Fence | undefined {
    const role = this.#parts.leadership?.role()
    if (fence !== undefined || !isAutomatic(by)) return fence
    return role?.kind === 'leads' ? role.fence : undefined
  }

  #overrule(model: string, pending: Pending, because: string): void {
    this.#tell(model, 'overruled', because)
    const isNewest = this.#pending.get(model) === pending
    this.#settle(model, pending, unwritten(because))
    if (isNewest) this.#parts.onOverruled?.(model)
  }

  async #tryWrite(model: string, pending: Pending): Promise<AdminAnswer | 'overruled'> {
    // The registry may have been read for this very write, and `forget` called.
    const editsOf = (): readonly RegistryEdit[] =>
      this.#pending.has(model)
        ? [{ kind: 'rollout', name: model, body: pending.memory as unknown as RegistryBody }]
        : []
    try {
      const { by, because } = pending.reason
      return await this.#parts.write(editsOf, { by, because, fence: this.#fenceOf(pending) })
    } catch (error) {
      if (error instanceof LeadershipLost) return 'overruled'
      return unwritten(String(error))
    }
  }

  #failed(model: string, pending: Pending, because: string): void {
    const { clock } = this.#parts
    this.#tell(model, 'failed', because)
    for (const resolve of pending.waiters.splice(0)) resolve(unwritten(because))
    // The failed memory goes to the end: one that is always refused must not block the others.
    const newest = this.#pending.get(model)
    this.#pending.delete(model)
    if (newest !== undefined) this.#pending.set(model, newest)
    if (this.#isClosed) return
    const waitUs = Math.min(RETRY_US_MAX, RETRY_US * 2 ** this.#failureCount++)
    this.#cancelRetry = clock.at(clock.now() + waitUs, () => void this.#write())
  }

  /** Ends a pending memory, written or given up. A newer memory of the same model still waits. */
  #settle(model: string, pending: Pending | undefined, answer: AdminAnswer): void {
    if (pending === undefined) return
    if (this.#pending.get(model) === pending) this.#pending.delete(model)
    for (const resolve of pending.waiters.splice(0)) resolve(answer)
  }

  #tell(model: string, outcome: 'kept' | 'failed' | 'lost' | 'overruled', because: string): void {
    const { clock, journal } = this.#parts
    journal.record({ kind: 'rollout-memory', at: clock.now(), model, outcome, because })
  }
}

function unwritten(because: string): AdminAnswer {
  const text = `the change is in force, but could not be written yet: ${because.replace(/\.$/, '')}. It is tried again`
  return { kind: 'refused', refusal: { code: 'registry-unavailable', because: text, param: null } }
}
