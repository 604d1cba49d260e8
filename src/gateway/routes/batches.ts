import { usToMs } from '../../base/clock.ts'
import { isBackgroundJob, type Job } from '../../domain/job.ts'
import {
  BATCH_ENDPOINTS,
  type BatchAsk,
  COMPLETION_WINDOW_MS,
  checkBatch,
  expectedEndMs,
  wireBatch,
} from '../../wire/batches.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { readStorable } from '../../wire/read-body.ts'
import { wireList } from '../../wire/vector-stores.ts'
import { refuseCall } from '../check-call.ts'
import { collectBody } from '../collect-body.ts'
import { fixedRetryUs } from '../error-table.ts'
import type { Route } from '../http-server.ts'
import { jobCallerOf } from '../job-caller.ts'
import { BodyFault, type CorpusCall, callRoutesOf, pageAskOf, type StoreDeps } from './corpora-answer.ts'
import { findJobFile, type JobFileDeps } from './job-files.ts'

/** /v1/batches to OpenAI's letter: a batch is a job. What runs it is `jobs/run-job.ts`. */
export interface BatchDeps extends StoreDeps {
  readonly jobFiles: JobFileDeps
  /** Jobs of one tenant that have not ended. */
  readonly openMax: number
  /** There is something new to do. */
  readonly wake: () => void
}

export function batchRoutes(deps: BatchDeps): Route[] {
  const route = callRoutesOf(deps, 'batches')
  return [
    route('POST', '/v1/batches', (call) => create(deps, call)),
    route('GET', '/v1/batches', (call) => list(deps, call)),
    route('GET', '/v1/batches/*', async (call, id) => told(deps, await find(deps, call, id))),
    route('POST', '/v1/batches/*', async (call, rest) => {
      const [id = '', word] = rest.split('/')
      if (word !== 'cancel')
        throw new BodyFault(invalidRequest('Unknown request URL: POST /v1/batches.', null, 'unknown-url'))
      return cancel(deps, call, id)
    }),
  ]
}

const nowMsOf = ({ jobFiles: { clock } }: BatchDeps): number => Math.floor(usToMs(clock.now()))

async function create(deps: BatchDeps, call: CorpusCall): Promise<unknown> {
  const { exchange, caller, tenantId } = call
  const { store, makeId } = deps.jobFiles
  const ask = await readAsk(deps, call)
  if (ask === undefined) return undefined
  if (!BATCH_ENDPOINTS.includes(ask.endpoint)) {
    const message = `Invalid 'endpoint': it must be one of ${BATCH_ENDPOINTS.join(', ')}.`
    throw new BodyFault(invalidRequest(message, 'endpoint', 'invalid-value'))
  }
  const bands = caller.bands ?? caller.tenant.bands
  if (!bands.includes('offline')) {
    const denial = () => 'bands' as const
    refuseCall(exchange, { ...caller, denial }, { route: 'batches', band: 'offline' })
    return undefined
  }
  const file = await findJobFile(deps.jobFiles, tenantId, ask.input_file_id)
  if (file?.purpose !== 'batch') {
    const message = `Invalid 'input_file_id': there is no file of this id with the purpose "batch".`
    throw new BodyFault(invalidRequest(message, 'input_file_id', 'invalid-value'), true)
  }
  const createdAtMs = nowMsOf(deps)
  const job: Job = {
    id: `batch_${makeId()}`,
    tenantId,
    caller: JSON.stringify(jobCallerOf(exchange)),
    endpoint: ask.endpoint,
    state: 'validating',
    createdAtMs,
    expiresAtMs: createdAtMs + COMPLETION_WINDOW_MS,
    times: {},
    metadata: ask.metadata ?? {},
    inputFileId: file.id,
    outputFileId: undefined,
    errorFileId: undefined,
    outputKeptS: ask.output_expires_after?.seconds,
    counts: { total: 0, completed: 0, failed: 0 },
    faults: [],
    model: undefined,
    tokens: 0,
    ending: undefined,
  }
  if ((await store.addJob(job, { openMax: deps.openMax })) === 'too-many-jobs') {
    exchange.sendRefusal({
      code: 'too-many-batches',
      because: `you have ${deps.openMax} batches and background responses that have not ended`,
      blame: 'tenant',
      retryAfterUs: fixedRetryUs('too-many-batches'),
    })
    return undefined
  }
  deps.wake()
  return wireBatch(job)
}

async function readAsk({ bodyBytesMax }: BatchDeps, { exchange }: CorpusCall): Promise<BatchAsk | undefined> {
  const body = await collectBody(exchange, bodyBytesMax)
  if (body.kind === 'gone') return undefined
  const json = body.kind === 'fault' ? body : readStorable(body.bytes)
  const checked = json.kind === 'fault' ? json : checkBatch(json.value)
  if (checked.kind === 'fault') throw new BodyFault(checked.fault)
  return checked.value
}

async function list({ jobFiles, ...deps }: BatchDeps, { exchange, tenantId }: CorpusCall): Promise<object> {
  const { limit, order, after } = pageAskOf(exchange.req.url)
  const page = await jobFiles.store.listJobs(tenantId, { limit, order, after })
  if (page === 'no-such-after') {
    const message = `Invalid 'after': there is no batch of this id.`
    throw new BodyFault(invalidRequest(message, 'after', 'invalid-value'), true)
  }
  const items = page.items.map((job) => told({ jobFiles, ...deps }, job))
  return wireList(items as Record<string, unknown>[], page.hasMore)
}

/** The job with the time at which it will end, if it goes on as it has begun. */
const told = (deps: BatchDeps, job: Job): object => wireBatch(job, expectedEndMs(job, nowMsOf(deps)))

async function find({ jobFiles }: BatchDeps, { tenantId }: CorpusCall, id: string): Promise<Job> {
  const job = isBackgroundJob({ id }) ? undefined : await jobFiles.store.findJob({ tenantId, id })
  if (job === undefined) throw noSuchBatch(id)
  return job
}

async function cancel(deps: BatchDeps, { tenantId }: CorpusCall, id: string): Promise<object> {
  const ref = { tenantId, id }
  const job = isBackgroundJob(ref) ? undefined : await deps.jobFiles.store.cancelJob(ref, nowMsOf(deps))
  if (job === undefined) throw noSuchBatch(id)
  deps.wake()
  return wireBatch(job)
}

const noSuchBatch = (id: string): BodyFault =>
  new BodyFault(
    { ...invalidRequest(`No batch found with id '${id.slice(0, 128)}'.`, null), code: 'batch-not-found' },
    true,
  )
