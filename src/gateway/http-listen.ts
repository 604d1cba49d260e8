import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HttpServer } from './http-server.ts'

/** Starts listening and gives the address; a port in use or a missing permission rejects with the system's own error. */
export function listen(
  server: Server,
  where: {
    readonly host: string
    readonly port: number
    readonly scheme?: 'http' | 'https'
    /** A socket that another process has bound; host and port are then its own. */
    readonly fd?: number | undefined
  },
): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where.fd === undefined ? { host: where.host, port: where.port } : { fd: where.fd }, () => {
      server.off('error', reject)
      const { address, port, family } = server.address() as AddressInfo
      resolve(`${where.scheme ?? 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`)
    })
  })
}

/** Error frames that end the last answers have this long to reach their readers: half a second, a slow link's worth. */
export const LAST_WORDS_US = 500_000

export interface Closing {
  /** Resolves when no answer is being generated; written bytes may still be on their way. */
  readonly answersEnded: Promise<void>
  /** From here no client is waited for: open connections are cut. */
  readonly patienceEnded: Promise<void>
}

/** Stops accepting at once; resolves when the last connection has closed. */
export function closeServer({ open }: HttpServer, closing: Closing): Promise<void> {
  const closed = open.close()
  void closing.answersEnded.then(() => open.closeWaiting())
  void closing.patienceEnded.then(() => open.closeAll())
  return closed
}
