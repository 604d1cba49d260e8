import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { Child, type ChildOptions, TestFolder } from './child.ts'
import { eventually } from './eventually.ts'
import { type Behaviour, FakeUpstream } from './fake-upstream.ts'
import { RawSocket } from './raw-http.ts'
import { authorization, MODEL, type Tree, upstreamTree } from './start-platform.ts'

/** Servers that tests end with real signals, each a process of its own, before an engine that waits in the middle of an answer. */

export const CHAT = '/v1/chat/completions'
/** Some answers here are longer than any socket's buffers, and an engine is cut at the bound that was sent to it. */
export const chat = {
  model: MODEL,
  stream: true,
  messages: [{ role: 'user', content: 'Hello?' }],
  max_tokens: 1_000_000,
}
const models = [{ name: MODEL, contextTokensMax: 4_000_000 }]

export const frame = (content: string | null, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: content === null ? {} : { content }, finish_reason }] })}\n\n`

/** Under the suite's limit of 120 s for hooks, so that the sentence is seen. */
const HOOK_MS = 60_000

export interface Running {
  readonly child: Child
  readonly address: string
}

export class EndingServers {
  readonly folder = new TestFolder()
  readonly #children: Child[] = []
  readonly #sockets: RawSocket[] = []
  #upstream: FakeUpstream | undefined
  /** Lets the answer that waits at its gate go on: the last one, where several wait. */
  openGate = (): void => {}

  constructor() {
    beforeAll(async () => {
      this.#upstream = await FakeUpstream.start(this.#gated)
    })
    afterEach(async () => {
      for (const socket of this.#sockets.splice(0)) socket.destroy()
      for (const child of this.#children.splice(0)) await child.end()
    })
    afterAll(async () => {
      await this.#upstream?.close()
      this.folder.remove()
    })
  }

  get upstream(): FakeUpstream {
    return this.#upstream as FakeUpstream
  }

  start(options: ChildOptions = {}): Child {
    const child = new Child(options)
    this.#children.push(child)
    return child
  }

  /** A server of its own for each test here, started before the test: on a busy machine that takes longer than the test. */
  useServer(server: Record<string, unknown> = {}): () => Running {
    let running: Running
    beforeEach(async () => {
      const tree = upstreamTree([this.upstream.url], { server, models })
      // An engine here is silent until the test lets it go on, which is no fault of the engine.
      for (const pool of tree['pools'] as Tree[]) pool['backend'] = { kind: 'http-openai', timeoutMs: 600_000 }
      const config = this.folder.write('spillway.yaml', tree)
      const child = this.start({ env: { SPILLWAY_CONFIG: config } })
      const address = await child.address(HOOK_MS)
      // It listens for signals a moment after it has said where it listens.
      expect((await fetch(`${address}/health`)).status).toBe(200)
      running = { child, address }
    })
    return () => running
  }

  connect(address: string): RawSocket {
    const socket = new RawSocket(address)
    this.#sockets.push(socket)
    return socket
  }

  async startStream(address: string): Promise<RawSocket> {
    const stream = this.connect(address).post(CHAT, chat, authorization())
    await stream.until('the first half', (received) => received.includes('One half'))
    return stream
  }

  async isRefused(address: string): Promise<boolean> {
    const probe = this.connect(address)
    await eventually('it is decided', () => probe.isClosed || !probe.socket.connecting)
    probe.destroy()
    return probe.isClosed && probe.received === ''
  }

  /** Says one half, and the other when the gate opens. */
  readonly #gated: Behaviour = async ({ res }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(frame('One half'))
    await new Promise<void>((resolve) => {
      this.openGate = resolve
    })
    res.write(frame(', the other half.'))
    res.end(`${frame(null, 'stop')}data: [DONE]\n\n`)
  }
}

/** The registry is read after the server listens: on a busy machine, seconds later. */
export async function ready(address: string): Promise<void> {
  await eventually('it is ready', async () => (await fetch(`${address}/health/ready`)).status === 200)
}
