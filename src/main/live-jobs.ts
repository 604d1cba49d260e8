import { breathe } from '../assembly/live-backends.ts'
import type { LiveStore } from '../assembly/live-store.ts'
import { ObjectBucket } from '../aws/http-bucket.ts'
import { type Clock, usToMs } from '../base/clock.ts'
import { makeIds } from '../base/live-ids.ts'
import { BREATHS_PER_TURN, SerialTurns } from '../base/serial-turns.ts'
import type { Config } from '../config/schema.ts'
import type { Control } from '../control/control.ts'
import { JobsUnavailable } from '../domain/job.ts'
import type { Tenant } from '../domain/tenant.ts'
import { ANTHROPIC_ERRORS } from '../gateway/anthropic-errors.ts'
import { BackgroundResponses } from '../gateway/background-responses.ts'
import { OPENAI_ERRORS } from '../gateway/error-words.ts'
import type { Route } from '../gateway/http-server.ts'
import { RouteLineRunner } from '../gateway/line-exchange.ts'
import { WebhookSender } from '../jobs/http-webhooks.ts'
import { JobRunner } from '../jobs/run-job.ts'
import type { Archive } from '../lifecycle/archive-ports.ts'
import type { FileBytes, JobStore } from '../lifecycle/job-ports.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { FsFileBytes } from '../store/fs-file-bytes.ts'
import { BucketFileBytes } from '../store/http-bucket-file-bytes.ts'
import { SqlFileBytes } from '../store/sql-file-bytes.ts'
import { SqlJobStore } from '../store/sql-job-store.ts'
import { SqlMessageStore } from '../store/sql-message-store.ts'
import { LiveQueues } from './live-queues.ts'

/**
 * Jobs of the live server: where they rest, and who runs their lines. A store that was never used is not opened for
 * them: the runner begins with the first job.
 */
export interface LiveJobs {
  readonly store: JobStore
  readonly files: FileBytes
  readonly background: BackgroundResponses
  wake(): void
  /** `routes` are what lines go through. */
  start(parts: JobParts): void
  close(): Promise<void>
}

interface JobParts {
  readonly routes: readonly Route[]
  readonly control: Pick<Control, 'tenants' | 'models'>
  readonly platform: Platform
  readonly onFault: (where: string, error: unknown) => void
}

interface JobsWorld {
  readonly clock: Clock
  readonly store: LiveStore
  readonly complain: (problem: string) => void
  readonly archive: Archive
  readonly control: Pick<Control, 'tenants'>
}

export function makeLiveJobs(config: Config, { clock, store, complain, archive, control }: JobsWorld): LiveJobs {
  const { jobs: options } = config
  const jobStore = new SqlJobStore(store.database)
  const files = makeFileBytes(config, { clock, store })
  let runner: JobRunner | undefined
  let queues: LiveQueues | undefined
  const wake = (): void => runner?.wake()
  const background = new BackgroundResponses({
    archive,
    store: jobStore,
    files,
    clock,
    openMax: options.openMax,
    tenantById: (tenantId) => knownTenant(control.tenants, tenantId),
    wake,
  })
  return {
    store: jobStore,
    files,
    background,
    wake,
    start({ routes, control: { tenants: keys, models }, platform, onFault }) {
      const lines = new RouteLineRunner({
        keys,
        routes,
        errors: OPENAI_ERRORS,
        errorsUnder: { '/v1/messages': ANTHROPIC_ERRORS },
      })
      const owner = makeIds()()
      const sender = new WebhookSender({
        receivers: options.webhooks,
        allowsPrivate: options.webhookPrivateAddresses,
        nowMs: () => usToMs(clock.now()),
        complain,
      })
      const isLeaving = (): boolean => platform.isSteppingDown
      const turns = new SerialTurns(breathe, BREATHS_PER_TURN)
      runner = new JobRunner({
        clock,
        store: jobStore,
        files,
        lines,
        options,
        owner,
        sender,
        background,
        isShared: store.isShared,
        isKnownModel: (model) => models.resolve(model) !== undefined,
        nextTurn: () => turns.next(),
        isLeaving,
        onFault,
      })
      if (store.isInUse) runner.wake()
      const messages = new SqlMessageStore(store.database)
      const parts = { clock, lines, keys, complain, isLeaving, onFault, jobStore, files }
      queues = new LiveQueues(options.queues, { ...parts, store: messages })
    },
    async close() {
      await Promise.all([runner?.close(), queues?.close()])
    },
  }
}

/** Where files rest: in a bucket, on the disk beside an embedded database, or in the database. */
function makeFileBytes(
  { jobs, store: { path } }: Config,
  { clock, store }: Pick<JobsWorld, 'clock' | 'store'>,
): FileBytes {
  const { bucket } = jobs
  if (bucket !== undefined) {
    const { url, region, accessKeyId, apiKey } = bucket
    const isSigned = accessKeyId !== undefined && apiKey !== undefined
    const credential = isSigned ? { accessKeyId, secretKey: apiKey } : undefined
    return new BucketFileBytes(new ObjectBucket({ url, region, credential, now: () => new Date(usToMs(clock.now())) }))
  }
  const isOnDisk = store.isEmbedded && store.isDurable
  return isOnDisk ? new FsFileBytes(jobs.path ?? `${path}.files`) : new SqlFileBytes(store.database)
}

/** Undefined when there is no such tenant. While tenants are still being read, nobody can say. */
function knownTenant(tenants: Control['tenants'], tenantId: string): Tenant | undefined {
  const tenant = tenants.tenantById(tenantId)
  if (tenant === undefined && tenants.whyNoTenant() !== undefined)
    throw new JobsUnavailable('The tenants have not been read yet.')
  return tenant
}
