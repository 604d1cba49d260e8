import { Child, type TestFolder } from './child.ts'
import { eventually, pause } from './eventually.ts'
import { ACME_KEY, authorization, MODEL, postJson, type Tree, testTree } from './start-platform.ts'

/** A gateway in a process of its own that runs jobs, and may be killed at any moment. */
export interface BatchSeen {
  readonly id: string
  readonly status: string
  readonly output_file_id: string | null
  readonly error_file_id: string | null
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly errors: unknown
}

const PRICES = [{ version: 'v1', models: [{ model: MODEL, inputUsd: 1, outputUsd: 1 }] }]

/** A gateway that is asked all the time has less of it for its lines. */
const LOOK_MS = 50

export class JobGateway {
  readonly #folder: TestFolder
  readonly #name: string
  readonly #tree: Tree
  readonly #env: Readonly<Record<string, string>>
  #child: Child | undefined
  base = ''

  constructor(folder: TestFolder, name: string, overrides: Tree, env: Readonly<Record<string, string>> = {}) {
    this.#folder = folder
    this.#name = name
    this.#env = env
    this.#tree = testTree({ prices: PRICES, ...overrides })
  }

  get pid(): number | undefined {
    return this.#child?.process.pid
  }

  async start(): Promise<void> {
    const config = this.#folder.write(`${this.#name}.yaml`, this.#tree)
    this.#child = new Child({ env: { ...this.#env, SPILLWAY_CONFIG: config } })
    this.base = await this.#child.address(60_000)
    await eventually('it is ready', async () => (await fetch(`${this.base}/health/ready`)).ok, 60_000)
  }

  async kill(): Promise<void> {
    this.#child?.signal('SIGKILL')
    await this.#child?.exited()
  }

  async stop(): Promise<void> {
    this.#child?.signal('SIGTERM')
    await this.#child?.exited(60_000)
  }

  async end(): Promise<void> {
    await this.#child?.end()
  }

  async submit(lines: Iterable<string>): Promise<BatchSeen> {
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new File([[...lines].join('\n')], 'asked.jsonl'))
    const sent = await fetch(`${this.base}/v1/files`, { method: 'POST', headers: authorization(ACME_KEY), body: form })
    const file = (await sent.json()) as { id: string }
    const ask = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const made = await postJson(`${this.base}/v1/batches`, ask)
    return (await made.json()) as BatchSeen
  }

  async see(id: string): Promise<BatchSeen> {
    const response = await fetch(`${this.base}/v1/batches/${id}`, { headers: authorization(ACME_KEY) })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    return (await response.json()) as BatchSeen
  }

  /** Waits until so many lines are answered, or the job has ended. */
  until(id: string, answered: number, withinMs = 120_000): Promise<BatchSeen> {
    return eventually(
      `${answered} lines are answered`,
      async () => {
        const batch = await this.see(id)
        const { completed, failed } = batch.request_counts
        if (completed + failed >= answered || isEnded(batch)) return batch
        await pause(LOOK_MS)
        return undefined
      },
      withinMs,
    )
  }

  ended(id: string, withinMs = 120_000): Promise<BatchSeen> {
    return eventually(
      'the job ends',
      async () => {
        const batch = await this.see(id)
        if (isEnded(batch)) return batch
        await pause(LOOK_MS)
        return undefined
      },
      withinMs,
    )
  }

  /** The names of the lines in both files, as often as they stand there. */
  async namesIn(batch: BatchSeen): Promise<string[]> {
    const names: string[] = []
    for (const id of [batch.output_file_id, batch.error_file_id]) {
      if (id === null) continue
      const content = await fetch(`${this.base}/v1/files/${id}/content`, { headers: authorization(ACME_KEY) })
      for (const line of (await content.text()).trim().split('\n'))
        names.push((JSON.parse(line) as { custom_id: string }).custom_id)
    }
    return names
  }
}

const isEnded = ({ status }: BatchSeen): boolean => ['completed', 'failed', 'expired', 'cancelled'].includes(status)

export function* jobLines(count: number, tokens = 4): Generator<string> {
  for (let n = 0; n < count; n++) {
    const body = { model: MODEL, messages: [{ role: 'user', content: `Say ${n}.` }], max_tokens: tokens }
    yield JSON.stringify({ custom_id: `line-${n}`, method: 'POST', url: '/v1/chat/completions', body })
  }
}

/** Names that are missing, and names that stand there more than once. */
export function faultsOf(names: readonly string[], count: number): { missing: string[]; double: string[] } {
  const seen = new Map<string, number>()
  for (const name of names) seen.set(name, (seen.get(name) ?? 0) + 1)
  const wanted = Array.from({ length: count }, (_, n) => `line-${n}`)
  return {
    missing: wanted.filter((name) => !seen.has(name)),
    double: [...seen].flatMap(([name, times]) => (times > 1 ? [name] : [])),
  }
}
