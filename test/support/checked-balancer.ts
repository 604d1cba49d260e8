import { connect, createServer, type Socket } from 'node:net'
import { pause } from './eventually.ts'

/**
 * A balancer as small as can be: it asks each server whether it is ready, gives each connection to the next one that said
 * so, and passes bytes. It never tries a second server, so that every connection that a server refuses is counted.
 */
const CHECK_EVERY_MS = 100

export class CheckedBalancer {
  refusedCount = 0
  connectionCount = 0
  readonly #ports: readonly number[]
  readonly #ready = new Set<number>()
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer({ allowHalfOpen: true }, (outer) => this.#pass(outer))
  #isClosed = false
  #next = 0

  constructor(ports: readonly number[]) {
    this.#ports = ports
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    for (const port of this.#ports) void this.#check(port)
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`
  }

  isReady(port: number): boolean {
    return this.#ready.has(port)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #check(port: number): Promise<void> {
    while (!this.#isClosed) {
      const status = await fetch(`http://127.0.0.1:${port}/health/ready`, { headers: { connection: 'close' } }).then(
        async (response) => {
          await response.body?.cancel()
          return response.status
        },
        () => undefined,
      )
      if (status === 200) this.#ready.add(port)
      else this.#ready.delete(port)
      await pause(CHECK_EVERY_MS)
    }
  }

  #pass(outer: Socket): void {
    this.connectionCount++
    const ready = this.#ports.filter((port) => this.#ready.has(port))
    const port = ready[this.#next++ % Math.max(1, ready.length)]
    this.#sockets.add(outer)
    outer.on('close', () => this.#sockets.delete(outer))
    if (port === undefined) {
      this.refusedCount++
      outer.destroy()
      return
    }
    const inner = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let isConnected = false
    inner.on('connect', () => {
      isConnected = true
    })
    inner.pipe(outer).pipe(inner)
    outer.on('error', () => inner.destroy()).on('close', () => inner.destroy())
    inner.on('error', () => {
      if (!isConnected) this.refusedCount++
      outer.destroy()
    })
  }
}
