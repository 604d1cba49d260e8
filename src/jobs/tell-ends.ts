import { type Clock, usToMs } from '../base/clock.ts'
import type { JobNotice } from '../domain/job.ts'
import type { JobStore, NoticeSender } from '../lifecycle/job-ports.ts'

/**
 * Tells receivers that jobs have ended, beside everything else: a receiver that is dead or slow delays no job and no other
 * receiver for longer than one try. Notices are in the store, so they outlive a crash; a receiver may be told twice, under
 * the same id. Tried again later and later, for three days.
 */
const SENT_AT_ONCE = 8
/** A try takes no longer, or its sender is gone. */
const LEASE_MS = 60_000
const FIRST_PAUSE_MS = 5_000
const PAUSE_MS_MAX = 4 * 3_600_000
export const NOTICE_KEPT_MS = 72 * 3_600_000

export interface TellingWorld {
  readonly clock: Clock
  readonly store: JobStore
  readonly sender: NoticeSender
  readonly onFault: (where: string, error: unknown) => void
}

export class EndTeller {
  readonly #world: TellingWorld
  #telling: Promise<void> | undefined

  constructor(world: TellingWorld) {
    this.#world = world
  }

  /** Returns at once. One round at a time. */
  wake(): void {
    this.#telling ??= this.#round().finally(() => {
      this.#telling = undefined
    })
  }

  async close(): Promise<void> {
    await this.#telling
  }

  async #round(): Promise<void> {
    const { clock, store, onFault } = this.#world
    try {
      const notices = await store.takeNotices(Math.floor(usToMs(clock.now())), LEASE_MS, SENT_AT_ONCE)
      await Promise.all(notices.map((notice) => this.#tell(notice)))
    } catch (error) {
      onFault('webhooks', error)
    }
  }

  async #tell(notice: JobNotice): Promise<void> {
    const { clock, store, sender } = this.#world
    const outcome = await sender.send(notice)
    const nextMs = usToMs(clock.now()) + pauseMs(notice.tries)
    if (outcome !== 'failed' || nextMs > notice.createdAtMs + NOTICE_KEPT_MS) await store.dropNotice(notice.job)
    else await store.delayNotice(notice.job, Math.floor(nextMs))
  }
}

/** 5 s, 10 s, 20 s … four hours: some thirty tries in three days. */
export const pauseMs = (tries: number): number => Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** Math.max(0, tries - 1))
