import { lookup } from 'node:dns/promises'
import { BoundSocket } from 'node:net'
import type { Config } from '../config/schema.ts'

/**
 * The sockets of a host, bound by the supervisor and handed to every process. The supervisor never accepts: whichever
 * process is free does. A process that leaves closes its own descriptor, and what waits in the accept queue stays there
 * for the others, because the socket is open as long as one of its descriptors is.
 */
export interface HostSockets {
  /** As clients reach it: `http://127.0.0.1:8080`. */
  readonly address: string
  readonly listenFd: number
  readonly metricsFd: number | undefined
  close(): void
}

export async function bindSockets({ server }: Config): Promise<HostSockets> {
  const { host, port, metricsHost = host, metricsPort, tls } = server
  const front = await bind(host, port)
  let metrics: BoundSocket | undefined
  try {
    metrics = metricsPort === undefined ? undefined : await bind(metricsHost, metricsPort)
  } catch (error) {
    front.close()
    throw error
  }
  const { address, port: bound, family } = front.address()
  const scheme = tls.certificates.length > 0 ? 'https' : 'http'
  return {
    address: `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
    listenFd: front.fd(),
    metricsFd: metrics?.fd(),
    close() {
      front.close()
      metrics?.close()
    },
  }
}

async function bind(host: string, port: number): Promise<BoundSocket> {
  const { address } = await lookup(host)
  return new BoundSocket({ host: address, port })
}
