import { DEMO_KEYS } from '../config/demo.ts'
import { loadConfig } from '../config/load.ts'
import { AdminRefused, type FlagValues, textFlag, UsageError } from './command.ts'
import type { FilePieces } from './fs-file-pieces.ts'
import { askServer, type ServerAsk, type ServerError, serverUrlOf } from './http-server-client.ts'

export interface WireJob {
  readonly id: string
  readonly status: string
  readonly endpoint: string
  readonly created_at: number
  readonly expires_at: number
  readonly output_file_id: string | null
  readonly error_file_id: string | null
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly errors: { readonly data: readonly WireJobFault[] } | null
  readonly spillway?: { readonly expected_at: number; readonly is_late: boolean }
}

interface WireJobFault {
  readonly code: string
  readonly line: number | null
  readonly message: string
}

/** Looks at a job's progress: each counts against the tenant's requests a minute. */
const LOOK_MS = 1_000
/** Waits for the tenant's allowance that one look may take, and the longest of them. */
const WAITS_MAX = 100
const WAIT_MS_MAX = 60_000

/** Jobs of a running server, as a tenant's key sees them. */
export class JobClient {
  readonly #url: string
  readonly #key: string

  constructor(flags: FlagValues) {
    const config = loadConfig({ path: textFlag(flags, 'config') })
    this.#url = serverUrlOf(flags, config)
    const key = textFlag(flags, 'key') ?? (config.file === undefined ? DEMO_KEYS[0]?.secret : undefined)
    if (key === undefined) throw new UsageError('--key is missing. Give a key of the tenant whose jobs they are.')
    this.#key = key
  }

  async call<T>(method: ServerAsk['method'], path: string, body?: unknown): Promise<T> {
    for (let waits = 0; ; waits++) {
      const answer = await askServer<T>({ url: this.#url, key: this.#key, method, path, body })
      if (answer.isOk) return answer.body
      const { status, retryAfterMs } = answer
      if (status !== 429 || retryAfterMs === undefined || waits >= WAITS_MAX)
        throw new AdminRefused(answer.body.error?.message ?? `the server answered ${status}`)
      await sleep(Math.min(WAIT_MS_MAX, retryAfterMs))
    }
  }

  /** Sends the file as a form; no more of it than a piece is in memory. */
  async upload(file: FilePieces): Promise<string> {
    const boundary = '----spillway-jobs-submit'
    const part = (name: string, more = ''): string =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`
    const fileName = file.name.replaceAll('"', '%22')
    const head = `${part('purpose')}batch\r\n${part('file', `; filename="${fileName}"`)}`
    const tail = `\r\n--${boundary}--\r\n`
    const encoder = new TextEncoder()
    async function* form(): AsyncGenerator<Uint8Array> {
      yield encoder.encode(head)
      yield* file.pieces
      yield encoder.encode(tail)
    }
    const headers = {
      authorization: `Bearer ${this.#key}`,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(encoder.encode(head).length + file.bytes + tail.length),
    }
    const sent = { method: 'POST', headers, body: form(), duplex: 'half' }
    let response: { readonly status: number; json(): Promise<unknown> }
    try {
      response = await fetch(`${this.#url}/v1/files`, sent as unknown as Parameters<typeof fetch>[1])
    } catch {
      throw new UsageError(`no server answers at ${this.#url}. Start one with "spillway serve", or give --url.`)
    }
    const answer = (await response.json()) as { readonly id?: string; readonly error?: ServerError }
    if (answer.id === undefined)
      throw new AdminRefused(answer.error?.message ?? `the server answered ${response.status}`)
    return answer.id
  }

  pause(): Promise<void> {
    return sleep(LOOK_MS)
  }
}

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
