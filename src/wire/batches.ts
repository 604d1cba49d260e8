import type { Static } from 'typebox'
import { Type } from '../base/schema.ts'
import type { Job, JobFile } from '../domain/job.ts'
import { makeCheck } from './check.ts'

/** Jobs and their files in OpenAI's words: a job is a batch. */
const Metadata = Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 512 }), { maxProperties: 16 })

const orNull = <T extends Parameters<typeof Type.Optional>[0]>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

/** OpenAI's bounds: from an hour to thirty days. */
export const KEPT_S_MIN = 3_600
export const KEPT_S_MAX = 2_592_000

export const BatchBody = Type.Object({
  input_file_id: Type.String({ minLength: 1, maxLength: 128 }),
  endpoint: Type.String({ minLength: 1, maxLength: 128 }),
  completion_window: Type.Literal('24h'),
  metadata: orNull(Metadata),
  output_expires_after: orNull(
    Type.Object({
      anchor: Type.Literal('created_at'),
      seconds: Type.Integer({ minimum: KEPT_S_MIN, maximum: KEPT_S_MAX }),
    }),
  ),
})

export type BatchAsk = Static<typeof BatchBody>

export const checkBatch = makeCheck(BatchBody)

/** Endpoints whose answers are one JSON document. */
export const BATCH_ENDPOINTS: readonly string[] = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/messages',
  '/v1/rerank',
  '/v1/score',
  '/v1/images/generations',
]

/** OpenAI knows one window. */
export const COMPLETION_WINDOW_MS = 24 * 3_600_000

const seconds = (ms: number | undefined): number | null => (ms === undefined ? null : Math.floor(ms / 1_000))

/** When a job ends if it goes on at its mean pace so far; undefined before a line is done, and when the job does not run. */
export function expectedEndMs({ state, counts, times }: Job, nowMs: number): number | undefined {
  const done = counts.completed + counts.failed
  if (state !== 'in_progress' || times.in_progress === undefined || done === 0) return undefined
  return nowMs + ((nowMs - times.in_progress) / done) * (counts.total - done)
}

/** `expectedAtMs`: when the job will end at its present speed, where that is known. */
export function wireBatch(job: Job, expectedAtMs?: number): object {
  const { times, counts, faults } = job
  return {
    id: job.id,
    object: 'batch',
    endpoint: job.endpoint,
    model: job.model ?? null,
    errors: faults.length === 0 ? null : { object: 'list', data: faults },
    input_file_id: job.inputFileId,
    completion_window: '24h',
    status: job.state,
    output_file_id: job.outputFileId ?? null,
    error_file_id: job.errorFileId ?? null,
    created_at: seconds(job.createdAtMs),
    in_progress_at: seconds(times.in_progress),
    expires_at: seconds(job.expiresAtMs),
    finalizing_at: seconds(times.finalizing),
    completed_at: seconds(times.completed),
    failed_at: seconds(times.failed),
    expired_at: seconds(times.expired),
    cancelling_at: seconds(times.cancelling),
    cancelled_at: seconds(times.cancelled),
    request_counts: counts,
    metadata: Object.keys(job.metadata).length === 0 ? null : job.metadata,
    ...(expectedAtMs !== undefined && {
      spillway: { expected_at: seconds(expectedAtMs), is_late: expectedAtMs > job.expiresAtMs },
    }),
  }
}

export const wireJobFile = ({ id, name, purpose, bytes, createdAtMs, expiresAtMs }: JobFile): object => ({
  id,
  object: 'file',
  bytes,
  created_at: seconds(createdAtMs),
  filename: name,
  purpose,
  status: 'processed',
  ...(expiresAtMs !== undefined && { expires_at: seconds(expiresAtMs) }),
})
