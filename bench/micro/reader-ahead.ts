import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { connect as connectTwo, createServer as createTwo } from 'node:http2'
import { type AddressInfo, connect, type Server } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: what is ahead of a reader that takes nothing is in the kernel and not in the gateway. Linux only: the kernel
 * tells its queues in /proc/net/tcp. Try it with a smaller send buffer in a network of its own (as root):
 *
 *   unshare -n sh -c 'ip link set lo up; echo "4096 16384 65536" > /proc/sys/net/ipv4/tcp_wmem; node bench/micro/reader-ahead.ts'
 */
const FRAME = `data: ${'x'.repeat(200)}\n\n`
/** A kernel with four megabytes of room is full well before. */
const FILL_MS = 5_000

interface Ahead {
  written: number
  node: number
}

/** Writes as fast as it may to a reader that takes nothing. */
const flood =
  (ahead: Ahead) =>
  (_req: unknown, response: unknown): void =>
    void pour(response as ServerResponse, ahead)

async function pour(res: ServerResponse, ahead: Ahead): Promise<void> {
  res.writeHead(200, ['content-type', 'text/event-stream'])
  let isOpen = true
  res.on('close', () => {
    isOpen = false
  })
  while (isOpen) {
    const isFree = res.write(FRAME)
    ahead.written += FRAME.length
    ahead.node = res.writableLength
    if (!isFree) await Promise.race([once(res, 'drain'), once(res, 'close')])
    else if (ahead.written % 20 === 0) await new Promise(setImmediate)
  }
}

/** Bytes in the send queue of our end and in the receive queue of the reader's. */
function kernelQueues(port: number): { send: number; receive: number } {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
  const of = (end: 1 | 2, queue: 0 | 1): number =>
    rows
      .filter((row) => row[3] === '01' && row[end]?.endsWith(`:${hex}`))
      .reduce((sum, row) => sum + Number.parseInt((row[4] ?? '0:0').split(':')[queue] as string, 16), 0)
  return { send: of(1, 0), receive: of(2, 1) }
}

async function measure(
  name: string,
  make: (ahead: Ahead) => Server,
  ask: (port: number) => () => void,
): Promise<Finding[]> {
  const ahead: Ahead = { written: 0, node: 0 }
  const server = make(ahead).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const leave = ask(port)
  await pause(FILL_MS)
  const { send, receive } = kernelQueues(port)
  const kb = (what: string, bytes: number): Finding => ({ name: `${name}: ${what}`, value: bytes / 1_000, unit: 'kB' })
  leave()
  server.close()
  return [
    kb('written', ahead.written),
    kb('in Node', ahead.node),
    kb('sent queue', send),
    kb('reader’s queue', receive),
  ]
}

const one = await measure(
  'HTTP/1',
  (ahead) => createServer(flood(ahead)),
  (port) => {
    const socket = connect(port, '127.0.0.1').pause()
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    return () => socket.destroy()
  },
)
const two = await measure(
  'HTTP/2, a window of 64 kB',
  (ahead) => createTwo(flood(ahead)),
  (port) => {
    const session = connectTwo(`http://127.0.0.1:${port}`)
    session.request({ ':path': '/' }).pause()
    return () => session.destroy()
  },
)
const wmem = readFileSync('/proc/sys/net/ipv4/tcp_wmem', 'utf8').trim().replace(/\s+/g, ' ')
tell(`what is ahead of a reader that takes nothing (tcp_wmem ${wmem})`, [...one, ...two])
