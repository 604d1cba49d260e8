import type { Socket } from 'node:net'
import { type Clock, msToUs } from '../base/clock.ts'

/** What the first bytes of a connection mean: undefined while more are needed to tell. */
export interface FirstBytes {
  /** What is put back for the next reader. */
  readonly rest: Buffer
  /** Hands the connection on. */
  readonly go: () => void
}

export interface FirstBytesOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** `seen` grows until its meaning is known; whoever decides bounds it. */
  readonly decide: (seen: Buffer) => FirstBytes | undefined
  /** Not enough bytes came in time. */
  readonly onTimeout: () => void
}

/** Looks at the first bytes of a connection before anybody reads it. */
export function lookAtFirstBytes(socket: Socket, { clock, timeoutMs, decide, onTimeout }: FirstBytesOptions): void {
  let seen: Buffer | undefined
  const look = (): void => {
    const bytes = socket.read() as Buffer | null
    if (bytes === null) return
    seen = seen === undefined ? bytes : Buffer.concat([seen, bytes])
    const decided = decide(seen)
    if (decided === undefined) return
    leave()
    if (decided.rest.length > 0) socket.unshift(decided.rest)
    decided.go()
  }
  const leave = (): void => {
    stop()
    socket.off('readable', look)
    socket.off('end', end)
    socket.off('close', leave)
    socket.off('error', ignore)
  }
  const end = (): void => {
    leave()
    socket.destroy()
  }
  const stop = clock.at(clock.now() + msToUs(timeoutMs), () => {
    leave()
    onTimeout()
  })
  socket.on('readable', look)
  socket.on('end', end)
  socket.on('close', leave)
  socket.on('error', ignore)
}

/** A client that hangs up before it has asked for anything is no fault of ours; 'close' follows. */
const ignore = (): void => {}
