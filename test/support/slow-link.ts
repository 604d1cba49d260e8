import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * A long, bad line between two regions, without privileges: every piece of data arrives a while later, and now and then a
 * connection breaks in the middle. What `tc netem` does to packets this does to connections.
 */
export interface LinkOptions {
  readonly delayMs: number
  /** Every so many connections one breaks, after its first piece of an answer. */
  readonly breakEvery: number
}

export class SlowLink {
  readonly url: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  brokenCount = 0

  private constructor(server: Server, url: string) {
    this.#server = server
    this.url = url
  }

  static async to(port: number, options: LinkOptions): Promise<SlowLink> {
    let count = 0
    const server = createServer((near) => {
      const far = connect(port, '127.0.0.1')
      const isBad = ++count % options.breakEvery === 0
      link.#sockets.add(near).add(far)
      near.on('data', (data) => later(() => far.write(data)))
      far.on('data', (data) =>
        later(() => {
          if (isBad) {
            link.brokenCount++
            near.destroy()
            far.destroy()
          } else near.write(data)
        }),
      )
      const end = (): void => {
        later(() => {
          near.destroy()
          far.destroy()
        })
        link.#sockets.delete(near)
        link.#sockets.delete(far)
      }
      for (const socket of [near, far]) socket.on('close', end).on('error', end)
    })
    const later = (act: () => void): void => void setTimeout(act, options.delayMs)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const link = new SlowLink(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return link
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
