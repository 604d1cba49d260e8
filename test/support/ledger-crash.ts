import { LiveClock } from '../../src/base/live-clock.ts'
import type { Settlement } from '../../src/domain/ledger.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlLedgerStore } from '../../src/store/sql-ledger-store.ts'
import { Child, type TestFolder } from './child.ts'
import { eventually } from './eventually.ts'
import { ACME_KEY, authorization, MODEL, postJson, type Tree, testTree } from './start-platform.ts'

/**
 * A server that is killed while it answers, again and again, and its ledger afterwards. A client's own notes say what it
 * got: each answer with the time at which its last byte came.
 */
export interface NotedAnswer {
  readonly id: string
  /** How many processes were killed before. */
  readonly life: number
  readonly endedAtMs: number
  readonly inputTokens: number
  readonly outputTokens: number
}

export interface CrashNotes {
  readonly answers: NotedAnswer[]
  /** When each process was killed. */
  readonly kills: number[]
}

/** Dollars per million tokens, and what that makes of a usage in nano-dollars. */
export const INPUT_USD = 0.5
export const OUTPUT_USD = 2
export const priceNanoOf = (input: number, output: number): number => input * 500 + output * 2_000

const PRICES = [{ version: 'v1', models: [{ model: MODEL, inputUsd: INPUT_USD, outputUsd: OUTPUT_USD }] }]

export class CrashingServer {
  readonly notes: CrashNotes = { answers: [], kills: [] }
  readonly #folder: TestFolder
  readonly #more: Tree
  #child: Child | undefined

  /** `more`: further sections of the configuration. */
  constructor(folder: TestFolder, more: Tree = {}) {
    this.#folder = folder
    this.#more = more
  }

  get #store(): string {
    return `${this.#folder.path}/data`
  }

  async start(): Promise<string> {
    const tree = testTree({ store: { path: this.#store }, prices: PRICES, ...this.#more })
    const child = new Child({ env: { SPILLWAY_CONFIG: this.#folder.write('spillway.yaml', tree) } })
    this.#child = child
    const base = await child.address(60_000)
    await eventually('it is ready', async () => (await fetch(`${base}/health/ready`)).ok, 60_000)
    return base
  }

  /** Asks from several clients at once; after so many answers, and a moment more, the server is killed. */
  async loadUntilKilled(base: string, clientCount: number, answerCount: number, moreMs = 0): Promise<void> {
    const isOver = { now: false }
    const life = this.notes.kills.length
    const before = this.notes.answers.length
    const clients = Array.from({ length: clientCount }, async () => {
      while (!isOver.now) await this.#ask(base, life).catch(() => {})
    })
    await eventually('answers', () => this.notes.answers.length >= before + answerCount || undefined, 60_000)
    await new Promise((resolve) => setTimeout(resolve, moreMs))
    this.notes.kills.push(Date.now())
    this.#child?.signal('SIGKILL')
    isOver.now = true
    await this.#child?.exited()
    await Promise.all(clients)
  }

  async stop(): Promise<void> {
    this.#child?.signal('SIGTERM')
    await this.#child?.exited(60_000)
  }

  async end(): Promise<void> {
    await this.#child?.end()
  }

  /** Every line, and the sums beside them. */
  async ledger(): Promise<{ readonly lines: Settlement[]; readonly sums: LedgerSums }> {
    const database = new PreparedDatabase(new PgliteDatabase({ clock: new LiveClock(), path: this.#store }), (db) =>
      migrate(db),
    )
    try {
      const store = new SqlLedgerStore(database)
      const ids = await database.query('select ticket_id from settlement', [])
      const lines: Settlement[] = []
      for (const row of ids) {
        const line = await store.find(String(row['ticket_id']))
        if (line !== undefined) lines.push(line)
      }
      const [usage] = await store.usage({ fromHour: 0, toHour: 2_000_000_000, by: [], rowsMax: 1 })
      const [balance] = await store.balances(['tenant:acme'], 0, 2_000_000_000)
      return {
        lines,
        sums: { usageNano: usage?.priceNano ?? 0n, balanceNano: balance?.priceNano ?? 0n },
      }
    } finally {
      await database.close()
    }
  }

  async #ask(base: string, life: number): Promise<void> {
    const body = { model: MODEL, messages: [{ role: 'user', content: 'Count to eight.' }], max_tokens: 8 }
    const response = await postJson(`${base}/v1/chat/completions`, body, authorization(ACME_KEY))
    const answer = (await response.json()) as {
      readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number }
    }
    this.notes.answers.push({
      id: response.headers.get('x-request-id') ?? '',
      life,
      endedAtMs: Date.now(),
      inputTokens: answer.usage.prompt_tokens,
      outputTokens: answer.usage.completion_tokens,
    })
  }
}

export interface LedgerSums {
  readonly usageNano: bigint
  readonly balanceNano: bigint
}

/**
 * Answers that are missing although a later one of the same process is there. Records are written in their order, so a
 * kill takes the last ones only; `slack` clients may note theirs out of order.
 */
export function lostBefore(
  answers: readonly NotedAnswer[],
  has: (id: string) => boolean,
  slack: number,
): NotedAnswer[] {
  return answers.filter((one, i) => {
    if (has(one.id)) return false
    const later = answers.slice(i + 1).filter(({ id, life }) => life === one.life && has(id))
    return later.length > slack
  })
}
