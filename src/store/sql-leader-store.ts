import type { Fence, LeaderStore, LeaseAnswer, LeaseAsk } from '../domain/leader.ts'
import { type Database, NOTICE_CHANNEL, type Parameter, type Row } from './database.ts'

/** Leaders in SQL, by the database's own clock: no two machines' clocks are compared. */
export class SqlLeaderStore implements LeaderStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  acquire({ name, holder, termUs }: LeaseAsk): Promise<LeaseAnswer> {
    return this.#ask(ACQUIRE, [name, holder, termUs])
  }

  renew({ name, holder, termUs, fence }: LeaseAsk & { readonly fence: number }): Promise<LeaseAnswer> {
    return this.#ask(RENEW, [name, holder, termUs, fence])
  }

  async release({ name, holder, number }: Fence): Promise<void> {
    await this.#database.query(RELEASE, [name, holder, number])
  }

  async #ask(sql: string, parameters: readonly Parameter[]): Promise<LeaseAnswer> {
    // A leader whose renewal waits behind other statements would lose its term.
    const [row] = await this.#database.query(sql, parameters, { isUrgent: true })
    return toAnswer(row)
  }
}

/** The part of a statement that holds only while this fence does: the row cannot change hands before it is done. */
export const heldFence = (first: number): string => `
  select from leader where name = $${first} and holder = $${first + 1} and fence = $${first + 2}::bigint
     and expires_at > clock_timestamp() for share`

export const fenceParameters = (fence: Fence | undefined): readonly Parameter[] => [
  fence?.name ?? null,
  fence?.holder ?? null,
  fence?.number ?? null,
]

const OWN = `fence::float8 as fence, null::text as holder, null::float8 as left_us from mine`
const OTHER = `leader.fence::float8 as fence, leader.holder,
  1e6 * extract(epoch from leader.expires_at - clock_timestamp())::float8 as left_us from leader`

/** The same holder may begin again: it has lost the answer to its last question. */
const ACQUIRE = `
with mine as (
  insert into leader as l (name, holder, fence, expires_at)
  values ($1, $2, 1, clock_timestamp() + $3::float8 * interval '1 microsecond')
  on conflict (name) do update
    set holder = excluded.holder, fence = l.fence + 1,
        expires_at = clock_timestamp() + $3::float8 * interval '1 microsecond'
  where l.expires_at <= clock_timestamp() or l.holder = excluded.holder
  returning fence
)
select ${OWN} union all select ${OTHER} where leader.name = $1 and not exists (select from mine)`

const RENEW = `
with mine as (
  update leader set expires_at = clock_timestamp() + $3::float8 * interval '1 microsecond'
   where name = $1 and holder = $2 and fence = $4::bigint and expires_at > clock_timestamp()
  returning fence
)
select ${OWN} union all select ${OTHER} where leader.name = $1 and not exists (select from mine)`

/** Only a release is told: questions of followers would set off questions of all others. */
const RELEASE = `
with released as (
  update leader set expires_at = clock_timestamp() where name = $1 and holder = $2 and fence = $3::bigint returning name
)
select pg_notify('${NOTICE_CHANNEL}', 'leader') from released`

/** No row: another gateway has made it at this very moment. */
function toAnswer(row: Row | undefined): LeaseAnswer {
  const holder = row?.['holder']
  if (row !== undefined && typeof holder !== 'string') return { kind: 'held', fence: Number(row['fence']) }
  return { kind: 'other', holder: typeof holder === 'string' ? holder : '', leftUs: Number(row?.['left_us'] ?? 0) }
}
