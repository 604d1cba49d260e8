import type { GatewayBeat, GatewayQuestion, GatewayStore, HeardTally, ToldTally } from '../domain/gateways.ts'
import type { Database } from './database.ts'

/** Gateways in SQL, by the database's clock. Each call is one statement. */

/** Three beats of a second may be lost. */
const SILENT = "interval '5 seconds'"
/** Rows of gateways that are gone: their evidence stays for as long as a trial may well last. */
const FORGOTTEN = "interval '1 day'"
/** An asker has given up long before. */
const STALE = "interval '30 seconds'"
/** Questions that are open at once, of all gateways. */
const QUESTIONS_MAX = 64
/** Gateways and totals in one answer. */
const ROWS_MAX = 1_024

export class SqlGatewayStore implements GatewayStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async beat(gatewayId: string): Promise<GatewayBeat> {
    const rows = await this.#database.query(BEAT, [gatewayId])
    const others = rows.filter((row) => row['what'] === 'gateway').map((row) => String(row['id']))
    const questions = rows
      .filter((row) => row['what'] !== 'gateway')
      .map(
        (row): GatewayQuestion => ({
          id: String(row['id']),
          kind: String(row['what']),
          body: JSON.parse(String(row['body'])),
        }),
      )
    return { otherIds: others, questions }
  }

  async leave(gatewayId: string): Promise<void> {
    await this.#database.query('delete from gateway where id = $1', [gatewayId])
  }

  async exchange(gatewayId: string, told: readonly ToldTally[]): Promise<readonly HeardTally[]> {
    const rows = await this.#database.query(EXCHANGE, [gatewayId, JSON.stringify(told).replaceAll('\\u0000', '')])
    return rows.map((row) => ({
      model: String(row['model']),
      gatewayId: String(row['gateway_id']),
      body: JSON.parse(String(row['body'])),
    }))
  }

  async ask({ id, kind, body, askedBy }: GatewayQuestion & { readonly askedBy: string }): Promise<boolean> {
    const rows = await this.#database.query(ASK, [id, kind, JSON.stringify(body), askedBy])
    return rows.length > 0
  }

  async answer(gatewayId: string, questionId: string, body: string): Promise<void> {
    await this.#database.query(ANSWER, [questionId, gatewayId, body.replaceAll('\u0000', '')])
  }

  async answersTo(questionId: string): Promise<readonly string[]> {
    const rows = await this.#database.query(
      'select body from gateway_answer where question_id = $1 order by gateway_id',
      [questionId],
    )
    return rows.map((row) => String(row['body']))
  }

  async secret(name: string, offered: string): Promise<string> {
    const rows = await this.#database.query(SECRET, [name, offered])
    const [known] = rows.length > 0 ? rows : await this.#database.query(KNOWN_SECRET, [name])
    return String(known?.['secret'])
  }

  async drop(questionId: string): Promise<void> {
    await this.#database.query('delete from gateway_question where id = $1', [questionId])
  }
}

/** Nothing when it was there already. */
const SECRET = 'insert into cell_secret (name, secret) values ($1, $2) on conflict (name) do nothing returning secret'
const KNOWN_SECRET = 'select secret from cell_secret where name = $1'

/** All parts see the tables as they were before. */
const BEAT = `
with beaten as (
  insert into gateway (id, heard_at) values ($1, clock_timestamp())
  on conflict (id) do update set heard_at = excluded.heard_at
), swept as (
  delete from gateway where heard_at < clock_timestamp() - ${FORGOTTEN}
)
select 'gateway' as what, id, null as body from gateway
 where id <> $1 and heard_at > clock_timestamp() - ${SILENT}
union all
select kind, q.id, q.body::text from gateway_question q
 where q.asked_by <> $1 and q.asked_at > clock_timestamp() - ${STALE}
   and not exists (select from gateway_answer a where a.question_id = q.id and a.gateway_id = $1)
limit ${ROWS_MAX}`

const EXCHANGE = `
with told as (
  select * from jsonb_to_recordset($2::jsonb) as told (model text, serial bigint, body jsonb)
), written as (
  insert into rollout_tally as known (model, gateway_id, serial, body, heard_at)
  select model, $1, serial, body, clock_timestamp() from told where body is not null order by model
  on conflict (model, gateway_id) do update
    set serial = excluded.serial, body = excluded.body, heard_at = excluded.heard_at
  where known.serial < excluded.serial
), swept as (
  delete from rollout_tally where heard_at < clock_timestamp() - ${FORGOTTEN} and gateway_id <> $1
)
select t.model, t.gateway_id, t.body::text as body from rollout_tally t
 where t.gateway_id <> $1 and t.model in (select model from told) and t.heard_at > clock_timestamp() - ${FORGOTTEN}
 order by t.heard_at desc limit ${ROWS_MAX}`

const ASK = `
with swept as (
  delete from gateway_question where asked_at < clock_timestamp() - ${STALE}
)
insert into gateway_question (id, kind, body, asked_by, asked_at)
select $1, $2, $3::jsonb, $4, clock_timestamp()
 where (select count(*) from gateway_question where asked_at >= clock_timestamp() - ${STALE}) < ${QUESTIONS_MAX}
returning id`

/** The question may be gone meanwhile. */
const ANSWER = `
insert into gateway_answer (question_id, gateway_id, body)
select id, $2, $3 from gateway_question where id = $1
on conflict do nothing`
