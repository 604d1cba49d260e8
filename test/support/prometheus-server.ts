import { readFileSync } from 'node:fs'
import { Child, ROOT, TestFolder } from './child.ts'
import { eventually } from './eventually.ts'
import { pathOf } from './installed.ts'
import { freePort } from './servers.ts'

/** A busy machine is slow to start processes. */
const SOON_MS = 60_000

export interface ScrapedServer {
  /** `http://host:port`. */
  readonly address: string
  readonly key: string
}

/** One series of an answer. */
export interface AnsweredSeries {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [at: number, value: string]
}

export interface RuleHealth {
  readonly name: string
  readonly health: string
  readonly lastError?: string
}

/**
 * A Prometheus of the test's own: it scrapes one server once a second, and evaluates our rules as often, for a test
 * cannot wait for the half minute that the file asks for. Its data are in a folder that goes with it.
 */
export class PrometheusServer {
  readonly #child: Child
  readonly #folder: TestFolder
  readonly #url: string

  private constructor(child: Child, folder: TestFolder, url: string) {
    this.#child = child
    this.#folder = folder
    this.#url = url
  }

  static async start({ address, key }: ScrapedServer): Promise<PrometheusServer> {
    const folder = new TestFolder()
    const rules = readFileSync(`${ROOT}/deploy/prometheus/spillway.rules.yaml`, 'utf8')
    folder.write('rules.yaml', rules.replaceAll(/^( +interval): \d+s$/gm, '$1: 1s'))
    const config = folder.write('prometheus.yaml', {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      scrape_configs: [
        {
          job_name: 'spillway',
          authorization: { credentials: key },
          static_configs: [{ targets: [new URL(address).host] }],
        },
      ],
    })
    const url = `http://127.0.0.1:${await freePort()}`
    const child = new Child({
      command: pathOf('prometheus'),
      args: [
        `--config.file=${config}`,
        `--storage.tsdb.path=${folder.path}/data`,
        `--web.listen-address=${new URL(url).host}`,
        '--enable-feature=exemplar-storage',
      ],
    })
    const server = new PrometheusServer(child, folder, url)
    try {
      await eventually('Prometheus is ready', () => server.#isReady(), SOON_MS)
    } catch (error) {
      await server.end()
      throw error
    }
    return server
  }

  async query(expr: string): Promise<readonly AnsweredSeries[]> {
    const data = await this.#get<{ result: AnsweredSeries[] }>('query', { query: expr })
    return data.result
  }

  async rules(): Promise<readonly RuleHealth[]> {
    const data = await this.#get<{ groups: { rules: RuleHealth[] }[] }>('rules')
    return data.groups.flatMap(({ rules }) => rules)
  }

  /** Trace ids of the exemplars of these series, in the last minutes. */
  async traceIds(selector: string): Promise<readonly string[]> {
    const now = Date.now() / 1_000
    const asked = { query: selector, start: String(now - 600), end: String(now + 60) }
    const data = await this.#get<{ exemplars: { labels: { trace_id?: string } }[] }[]>('query_exemplars', asked)
    return data.flatMap(({ exemplars }) => exemplars.flatMap(({ labels }) => labels.trace_id ?? []))
  }

  async end(): Promise<void> {
    await this.#child.end()
    this.#folder.remove()
  }

  async #isReady(): Promise<boolean> {
    if (this.#child.exitCode !== undefined) throw new Error(`it ended: ${this.#child.err}`)
    const response = await fetch(`${this.#url}/-/ready`).catch(() => undefined)
    await response?.body?.cancel()
    return response?.ok === true
  }

  async #get<T>(path: string, asked: Record<string, string> = {}): Promise<T> {
    const response = await fetch(`${this.#url}/api/v1/${path}?${new URLSearchParams(asked).toString()}`)
    const answer = (await response.json()) as { status: string; error?: string; data: T }
    if (answer.status !== 'success') throw new Error(`${path} ${asked['query'] ?? ''}: ${answer.error}`)
    return answer.data
  }
}
