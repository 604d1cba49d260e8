import { connect } from 'node:net'

/**
 * Asks a PostgreSQL server to cancel the statement of a session: sixteen bytes over a separate connection (PostgreSQL
 * documentation, "Canceling Requests in Progress"). There is no reply; if it worked, the query itself fails.
 */
export interface Session {
  readonly host: string
  readonly port: number
  readonly processId: number
  readonly secretKey: number
}

const CANCEL_REQUEST = 80_877_102
const CONNECT_MS_MAX = 500

export function cancelInDatabase({ host, port, processId, secretKey }: Session): void {
  const message = Buffer.alloc(16)
  message.writeInt32BE(16, 0)
  message.writeInt32BE(CANCEL_REQUEST, 4)
  message.writeInt32BE(processId, 8)
  message.writeInt32BE(secretKey, 12)
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect({ host, port })
  socket.setTimeout(CONNECT_MS_MAX, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.on('connect', () => socket.end(message))
}
