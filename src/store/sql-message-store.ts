import type { MessageStore, MessageSweep, QueueRef, RememberedAnswer, SinkAnswer } from '../lifecycle/message-ports.ts'
import type { Database, Parameter, Row } from './database.ts'
import { jobDatabase } from './job-database.ts'
import { withoutNuls } from './without-nuls.ts'

/** Answers of messages in SQL; asked in the lane of jobs. */
const RUNNER = { lane: '/jobs' } as const

/** The row that was there before counts: two gateways may have run a message that was hidden for too short a time. */
const KEEP = `
insert into queue_message (tenant_id, queue_id, id, document, created_at_ms)
select $1, $2, g.id, g.document, $4::bigint from json_to_recordset($3::json) as g (id text, document text)
on conflict do nothing`

const IDS = `select g.id from json_to_recordset($3::json) as g (id text)`
const KEPT = `select id, document from queue_message where tenant_id = $1 and queue_id = $2 and id in (${IDS})`
const MARK_SENT = `update queue_message set document = null where tenant_id = $1 and queue_id = $2 and id in (${IDS})`
const MARK_REMOVED = `
update queue_message set removed_at_ms = $4::bigint where tenant_id = $1 and queue_id = $2 and id in (${IDS})`

const SWEEP = `
with old as (
  select tenant_id, queue_id, id from queue_message
   where created_at_ms < $1::bigint and (removed_at_ms < $1::bigint or created_at_ms < $2::bigint)
   order by created_at_ms limit $3::int
), gone as (
  delete from queue_message m using old o
   where m.tenant_id = o.tenant_id and m.queue_id = o.queue_id and m.id = o.id returning 1
)
select count(*)::int as n from gone`

export class SqlMessageStore implements MessageStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = withoutNuls(jobDatabase(database))
  }

  async keepAnswers(
    queue: QueueRef,
    answers: readonly SinkAnswer[],
    nowMs: number,
  ): Promise<readonly RememberedAnswer[]> {
    await this.#ask(KEEP, [queue.tenantId, queue.queueId, JSON.stringify(answers), nowMs])
    return this.keptAnswers(
      queue,
      answers.map(({ id }) => id),
    )
  }

  async keptAnswers(queue: QueueRef, ids: readonly string[]): Promise<readonly RememberedAnswer[]> {
    const rows = await this.#ask(KEPT, wordsOf(queue, ids))
    return rows.map((row) => ({ id: String(row['id']), document: (row['document'] as string | null) ?? undefined }))
  }

  async markSent(queue: QueueRef, ids: readonly string[]): Promise<void> {
    await this.#ask(MARK_SENT, wordsOf(queue, ids))
  }

  async markRemoved(queue: QueueRef, ids: readonly string[], nowMs: number): Promise<void> {
    await this.#ask(MARK_REMOVED, [...wordsOf(queue, ids), nowMs])
  }

  async sweepMessages({ removedBeforeMs, createdBeforeMs, limit }: MessageSweep): Promise<number> {
    const [row] = await this.#ask(SWEEP, [removedBeforeMs, createdBeforeMs, limit])
    return Number(row?.['n'] ?? 0)
  }

  #ask(statement: string, parameters: readonly Parameter[]): Promise<readonly Row[]> {
    return this.#database.query(statement, parameters, RUNNER)
  }
}

const wordsOf = ({ tenantId, queueId }: QueueRef, ids: readonly string[]): Parameter[] => [
  tenantId,
  queueId,
  JSON.stringify(ids.map((id) => ({ id }))),
]
