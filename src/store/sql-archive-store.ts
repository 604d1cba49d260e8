import type { ArchivedAnswer, ArchivedKind } from '../domain/archive.ts'
import type {
  AnswerChain,
  ArchiveAsk,
  ArchivePage,
  ArchiveStore,
  ArchiveTenant,
  ArchiveTotal,
  ChainAsk,
  ListedAnswer,
  MetadataChange,
} from '../lifecycle/archive-ports.ts'
import {
  CHAIN,
  CHANGE_METADATA,
  ERASE_TENANT,
  FIND,
  FORGET_TOTALS,
  KNOWS,
  listSql,
  MAKE_ROOM,
  PUT,
  REMOVE,
  SWEEP,
  TENANTS,
  TOTAL,
} from './archive-sql.ts'
import { type Database, type Parameter, type Row, tenantLane } from './database.ts'
import { withoutNuls } from './without-nuls.ts'

/** The archive in SQL. `archive-sql.ts` explains the statements. Statements of a tenant wait in the tenant's lane. */
export class SqlArchiveStore implements ArchiveStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = withoutNuls(database)
  }

  async put(tenantId: string, answers: readonly ArchivedAnswer[]): Promise<ArchiveTotal> {
    const given = answers.map((answer) => ({
      id: answer.id,
      kind: answer.kind,
      created_at_ms: answer.createdAtMs,
      expires_at_ms: answer.expiresAtMs,
      model: answer.model,
      metadata: answer.metadata,
      previous_id: answer.previousId ?? null,
      document: answer.document,
      input: answer.input,
    }))
    await this.#tell(tenantId, PUT, [tenantId, JSON.stringify(given)])
    const [row] = await this.#tell(tenantId, TOTAL, [tenantId])
    return { answers: Number(row?.['answers'] ?? 0), bytes: Number(row?.['bytes'] ?? 0) }
  }

  async find(tenantId: string, kind: ArchivedKind, id: string, nowMs: number): Promise<ArchivedAnswer | undefined> {
    const [row] = await this.#ask(tenantId, FIND, [tenantId, kind, id, nowMs])
    return row && toAnswer(row)
  }

  async chain({ tenantId, kind, id, nowMs, answersMax, bytesMax }: ChainAsk): Promise<AnswerChain | undefined> {
    const rows = await this.#ask(tenantId, CHAIN, [tenantId, kind, id, nowMs, answersMax, bytesMax])
    const [oldest] = rows
    if (oldest === undefined) return undefined
    const state = oldest['previous_id'] === null ? 'whole' : oldest['goes_on'] === true ? 'too-long' : 'broken'
    return { answers: rows.map(toAnswer), state }
  }

  async list(
    tenantId: string,
    ask: ArchiveAsk & { readonly nowMs: number; readonly bytesMax: number },
  ): Promise<ArchivePage> {
    const { kind, after = null, nowMs, model = null, metadata = {}, limit, bytesMax } = ask
    const words = [tenantId, kind, after, nowMs, model, JSON.stringify(metadata), limit, bytesMax]
    const rows = await this.#ask(tenantId, listSql(ask.order), words)
    if (rows.length === 0 && after !== null) {
      const known = await this.#ask(tenantId, KNOWS, [tenantId, kind, after])
      if (known.length === 0) return 'no-such-after'
    }
    return { items: rows.map(toListed), hasMore: Number(rows[0]?.['found'] ?? 0) > rows.length }
  }

  async changeMetadata({ tenantId, kind, id, metadata, nowMs }: MetadataChange): Promise<ArchivedAnswer | undefined> {
    const words = [tenantId, kind, id, nowMs, JSON.stringify(metadata)]
    const [row] = await this.#ask(tenantId, CHANGE_METADATA, words)
    return row && toAnswer(row)
  }

  async remove(tenantId: string, kind: ArchivedKind, id: string, nowMs: number): Promise<boolean> {
    const [row] = await this.#ask(tenantId, REMOVE, [tenantId, kind, id, nowMs])
    return row?.['was_there'] === true
  }

  async makeRoom(tenantId: string, { answers, bytes }: ArchiveTotal, limit: number): Promise<number> {
    return countOf(await this.#tell(tenantId, MAKE_ROOM, [tenantId, answers, bytes, limit]))
  }

  async sweep(nowMs: number, limit: number): Promise<number> {
    return countOf(await this.#database.query(SWEEP, [nowMs, limit]))
  }

  /** In the platform's lane: a tenant that is removed cannot be in its own way. */
  async eraseTenant(tenantId: string, beforeMs: number, limit: number): Promise<number> {
    const erased = countOf(await this.#database.query(ERASE_TENANT, [tenantId, beforeMs, limit]))
    if (erased < limit) await this.#database.query(FORGET_TOTALS, [tenantId])
    return erased
  }

  async tenants(after: string, limit: number): Promise<readonly ArchiveTenant[]> {
    const rows = await this.#database.query(TENANTS, [after, limit])
    return rows.map((row) => ({
      tenantId: String(row['tenant_id']),
      answers: Number(row['answers']),
      bytes: Number(row['bytes']),
      lastWrittenAtMs: Number(row['last_written_at_ms']),
    }))
  }

  /** A client waits for the answer. */
  #ask(tenantId: string, sql: string, parameters: readonly Parameter[]): Promise<readonly Row[]> {
    return this.#database.query(sql, parameters, { lane: tenantLane(tenantId), isUrgent: true })
  }

  /** Nobody waits. */
  #tell(tenantId: string, sql: string, parameters: readonly Parameter[]): Promise<readonly Row[]> {
    return this.#database.query(sql, parameters, { lane: tenantLane(tenantId) })
  }
}

const countOf = (rows: readonly Row[]): number => Number(rows[0]?.['n'] ?? 0)

function toListed(row: Row): ListedAnswer {
  const previousId = row['previous_id']
  return {
    tenantId: String(row['tenant_id']),
    id: String(row['id']),
    kind: row['kind'] as ArchivedKind,
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
    model: String(row['model']),
    metadata: JSON.parse(String(row['metadata'])) as ArchivedAnswer['metadata'],
    ...(typeof previousId === 'string' && { previousId }),
    document: String(row['document']),
  }
}

const toAnswer = (row: Row): ArchivedAnswer => ({ ...toListed(row), input: String(row['input']) })
