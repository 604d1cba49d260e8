import { request } from 'node:http'
import { afterAll, beforeAll } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, ROOT, TestFolder } from './child.ts'
import { eventually } from './eventually.ts'
import { answers, FakeUpstream } from './fake-upstream.ts'
import { sampleValue } from './parse-exposition.ts'
import { ACME_KEY, MODEL, type Tree, upstreamTree } from './start-platform.ts'

/** A host with several processes, started as people start it. */
export const HOST_ADMIN_KEY = 'sk-test-admin'

/** A busy machine is slow to start processes; that they never start is what tests would find. */
export const HOST_SOON_MS = 180_000

export function hostTree(url: string, processes: number, folder: TestFolder, more: Tree = {}): Tree {
  const { server, ...rest } = more
  return upstreamTree([url], {
    server: { port: 0, processes, ...(server as Tree | undefined) },
    admin: { keys: [{ id: 'ada', hash: hashKey(HOST_ADMIN_KEY) }] },
    store: { path: `${folder.path}/store` },
    logging: { level: 'info' },
    ...rest,
  })
}

export const tenant = (id: string, key: string, more: Tree = {}): Tree => ({
  id,
  slo: 'patient',
  keys: [{ id: `${id}-1`, hash: hashKey(key) }],
  ...more,
})

/** The hosts of a test file and their engine, all ended after it. */
export class Hosts {
  readonly folder = new TestFolder()
  readonly #started: Host[] = []
  #upstream: FakeUpstream | undefined

  constructor() {
    beforeAll(async () => {
      this.#upstream = await FakeUpstream.start(answers())
    })
    afterAll(async () => {
      await Promise.all(this.#started.map(({ child }) => child.end()))
      await this.#upstream?.close()
      this.folder.remove()
    })
  }

  get upstream(): FakeUpstream {
    return this.#upstream as FakeUpstream
  }

  async start(name: string, tree: Tree): Promise<Host> {
    const host = await Host.start(this.folder.write(name, tree))
    this.#started.push(host)
    return host
  }
}

export class Host {
  readonly child: Child
  readonly address: string

  constructor(child: Child, address: string) {
    this.child = child
    this.address = address
  }

  static async start(file: string): Promise<Host> {
    const child = new Child({ args: [`${ROOT}/src/cli/cli.ts`, 'serve', '--config', file] })
    const host = new Host(child, await child.address(HOST_SOON_MS))
    await eventually('it names its processes', () => host.pids().every((pid) => pid > 0))
    return host
  }

  /** Process ids by number, as the host said last. */
  pids(): number[] {
    const said = [...this.child.err.matchAll(/(?:serve|restarted) \(([^)]*)\)/g)].at(-1)?.[1] ?? ''
    return said.split(', ').map((one) => Number(one.split(': ')[1]))
  }

  /** Numbers of the processes that have logged an answer. */
  answered(): Set<number> {
    const lines = this.child.out.split('\n').filter((line) => line.includes('"msg":"request settled"'))
    return new Set(lines.map((line) => (JSON.parse(line) as { process: number }).process))
  }

  async bothAnswer(): Promise<void> {
    await eventually(
      'both answer',
      async () => {
        await Promise.all(Array.from({ length: 8 }, () => this.chat()))
        return this.answered().size === 2
      },
      HOST_SOON_MS,
    )
  }

  /** Answers to the tenant acme, as the metrics have them. */
  async requestCount(): Promise<number> {
    const { text } = await this.get('/metrics')
    const labels = { tenant: 'acme', model: MODEL, outcome: 'completed', code: 'none' }
    return sampleValue(text, 'spillway_requests_total', labels) ?? 0
  }

  /** Asks over a connection of its own, so that any process may answer. */
  get(path: string, key: string = HOST_ADMIN_KEY): Promise<Told> {
    return ask(this.address + path, 'GET', bearer(key))
  }

  post(path: string, body: unknown, key: string = HOST_ADMIN_KEY): Promise<Told> {
    return ask(this.address + path, 'POST', bearer(key), body)
  }

  /** With a session of the console, and no key. */
  look(path: string, cookie: string): Promise<Told> {
    return ask(this.address + path, 'GET', { cookie })
  }

  chat(key: string = ACME_KEY): Promise<Told> {
    return this.post('/v1/chat/completions', CHAT, key)
  }

  /** Every one of many fresh connections gets this status: no process knows less than another. */
  async everywhere(what: string, wanted: number, get: () => Promise<Told>): Promise<void> {
    await eventually(
      what,
      async () => {
        const all = await Promise.all(Array.from({ length: 24 }, get))
        return all.every(({ status }) => status === wanted)
      },
      HOST_SOON_MS,
    )
  }
}

const CHAT = { model: MODEL, messages: [{ role: 'user', content: 'Hello there.' }], max_tokens: 8 }

export interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

function ask(url: string, method: string, by: Record<string, string>, body?: unknown): Promise<Told> {
  return new Promise((resolve, reject) => {
    const headers = { ...by, 'content-type': 'application/json' }
    const sent = request(url, { method, agent: false, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
