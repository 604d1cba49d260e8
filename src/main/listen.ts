import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Starts listening; a port in use or a missing permission rejects with the system's own error. */
export function listen(server: Server, where: { readonly host: string; readonly port: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: where.host, port: where.port }, () => {
      server.off('error', reject)
      const { address, port, family } = server.address() as AddressInfo
      resolve(`http://${family === 'IPv6' ? `[${address}]` : address}:${port}`)
    })
  })
}

/** Stops accepting, lets open exchanges end, and closes kept-alive connections that carry none. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // What becomes idle from now on, with the answer that it still waits for, is closed as well.
    server.keepAliveTimeout = 1
    server.keepAliveTimeoutBuffer = 0
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}
