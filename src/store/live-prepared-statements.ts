import { type PGlite, protocol } from '@electric-sql/pglite'
import type { Parameter } from './database.ts'

/**
 * Prepared statements of the embedded database. Its own `query` parses, describes, plans and discards each time, in six
 * calls into WebAssembly; a prepared statement costs one call (bind, execute and sync in one message). A search takes
 * half the time that way.
 */

/** We have some forty statements; filters of clients make more. The least recently used one is closed. */
const STATEMENTS_MAX = 128

/** A table changed under a plan, or the statement is gone: prepare it again, once. */
const STALE_CODES = ['0A000', '26000']

interface Prepared {
  readonly name: string
  readonly fields: ReadonlyArray<{ readonly name: string; readonly read: (text: string) => unknown }>
}

type Message = { readonly name: string }
type DataRow = Message & { readonly fields: ReadonlyArray<string | null> }
type RowDescription = Message & {
  readonly fields: ReadonlyArray<{ readonly name: string; readonly dataTypeID: number }>
}

export class PreparedStatements {
  readonly #database: PGlite
  readonly #known = new Map<string, Prepared>()
  #count = 0

  constructor(database: PGlite) {
    this.#database = database
  }

  async query(sql: string, parameters: readonly Parameter[]): Promise<Record<string, unknown>[]> {
    try {
      return await this.#run(await this.#prepared(sql), parameters)
    } catch (error) {
      if (!STALE_CODES.includes((error as { code?: string }).code ?? '')) throw error
      await this.#close(sql)
      return this.#run(await this.#prepared(sql), parameters)
    }
  }

  async #prepared(sql: string): Promise<Prepared> {
    const known = this.#known.get(sql)
    if (known !== undefined) {
      this.#known.delete(sql)
      this.#known.set(sql, known)
      return known
    }
    if (this.#known.size >= STATEMENTS_MAX) await this.#close(this.#known.keys().next().value as string)
    const name = `s${++this.#count}`
    const { serialize } = protocol
    const messages = await this.#send([
      serialize.parse({ name, text: sql }),
      serialize.describe({ type: 'S', name }),
      serialize.sync(),
    ])
    const description = messages.find((message): message is RowDescription => message.name === 'rowDescription')
    const fields = (description?.fields ?? []).map((field) => ({
      name: field.name,
      read: READERS[field.dataTypeID] ?? String,
    }))
    const prepared = { name, fields }
    this.#known.set(sql, prepared)
    return prepared
  }

  async #run({ name, fields }: Prepared, parameters: readonly Parameter[]): Promise<Record<string, unknown>[]> {
    const values = parameters.map((value) => (value === null || value instanceof Uint8Array ? value : String(value)))
    const { serialize } = protocol
    const messages = await this.#send([
      serialize.bind({ statement: name, values }),
      serialize.execute({}),
      serialize.sync(),
    ])
    const rows: Record<string, unknown>[] = []
    for (const message of messages) {
      if (message.name !== 'dataRow') continue
      const row: Record<string, unknown> = {}
      ;(message as DataRow).fields.forEach((text, i) => {
        const field = fields[i]
        if (field !== undefined) row[field.name] = text === null ? null : field.read(text)
      })
      rows.push(row)
    }
    return rows
  }

  async #close(sql: string): Promise<void> {
    const known = this.#known.get(sql)
    this.#known.delete(sql)
    const { serialize } = protocol
    if (known !== undefined) await this.#send([serialize.close({ type: 'S', name: known.name }), serialize.sync()])
  }

  /** Sends all parts in one message; returns the reply, or the error. */
  async #send(parts: readonly Uint8Array[]): Promise<readonly Message[]> {
    const { messages } = await this.#database.execProtocol(Buffer.concat(parts), { throwOnError: false })
    const error = messages.find((message) => message.name === 'error')
    if (error !== undefined) throw error
    return messages
  }
}

const isTrue = (text: string): boolean => text === 't'

/** Readers by the type's number in PostgreSQL's catalogue; other types stay text. */
const READERS: Readonly<Record<number, (text: string) => unknown>> = {
  16: isTrue,
  // Bytes come as `\\x` and hexadecimal digits.
  17: (text) => Buffer.from(text.slice(2), 'hex'),
  21: Number,
  23: Number,
  700: Number,
  701: Number,
  114: JSON.parse,
  3802: JSON.parse,
}
