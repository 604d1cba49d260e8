import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import type { Control } from '../control/control.ts'
import { callerOfJob } from '../gateway/job-caller.ts'
import { openSqsQueue } from '../jobs/http-sqs-queue.ts'
import { QueueRunner } from '../jobs/run-queue.ts'
import type { FileBytes, JobStore, LineRunner } from '../lifecycle/job-ports.ts'
import type { MessageStore } from '../lifecycle/message-ports.ts'

/** The queues of the configuration, each with a runner of its own. One that cannot be opened holds up no other. */
export interface QueueParts {
  readonly clock: Clock
  readonly lines: LineRunner
  readonly store: MessageStore
  readonly jobStore: JobStore
  readonly files: FileBytes
  readonly keys: Control['tenants']
  readonly isLeaving: () => boolean
  readonly complain: (problem: string) => void
  readonly onFault: (where: string, error: unknown) => void
}

type QueueConfig = Config['jobs']['queues'][number]

export class LiveQueues {
  readonly #parts: QueueParts
  readonly #runners: Promise<QueueRunner | undefined>[]

  constructor(queues: readonly QueueConfig[], parts: QueueParts) {
    this.#parts = parts
    this.#runners = queues.map((queue) => this.#open(queue))
  }

  async close(): Promise<void> {
    await Promise.all(this.#runners.map(async (runner) => (await runner)?.close()))
  }

  async #open(config: QueueConfig): Promise<QueueRunner | undefined> {
    const { clock, keys, complain, jobStore, files, ...parts } = this.#parts
    const { id, url, answersUrl, runningMax, receivesMax, windowMinutes, keyHash } = config
    const digest = keyHash.slice('sha256:'.length)
    try {
      const queue = await openSqsQueue({ url, answersUrl, region: config.region ?? regionOf(url) })
      const caller = JSON.stringify({ digest })
      const runner = new QueueRunner({
        ...parts,
        clock,
        queue,
        complain,
        files: { clock, store: jobStore, files },
        terms: { id, caller, runningMax, receivesMax, windowMs: windowMinutes * 60_000 },
        tenantOf: () => tenantOfKey(keys, digest),
      })
      runner.start()
      return runner
    } catch (error) {
      complain(`the queue ${id} cannot be opened: ${error instanceof Error ? error.message : String(error)}`)
      return undefined
    }
  }
}

/** The tenant of the key, while its lines may run. */
function tenantOfKey(keys: Control['tenants'], digest: string): { tenantId: string } | { because: string } {
  const caller = callerOfJob(keys, { digest, address: undefined })
  if ('code' in caller) return { because: `its key opens nothing (${caller.because})` }
  const { tenant } = caller
  if (!tenant.bands.includes('offline')) return { because: `its tenant ${tenant.id} may not use the band offline` }
  const denied = caller.denial?.({ band: 'offline', clientAddress: () => undefined })
  if (denied !== undefined) return { because: `the terms of its key forbid it (${denied})` }
  return { tenantId: tenant.id }
}

/** SQS has its region in its address. */
const regionOf = (url: string): string => /^https?:\/\/sqs\.([a-z0-9-]+)\./.exec(url)?.[1] ?? 'us-east-1'
