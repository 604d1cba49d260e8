import type { Socket } from 'node:net'
import { type Clock, type Instant, msToUs } from '../base/clock.ts'

/**
 * Looks at the first bytes of connections before anybody reads them. Every connection comes by here, so it is cheap:
 * no timer for each (one looks after all of them), and no copy.
 */
export interface FirstBytesOptions {
  readonly clock: Clock
  /** Connections that have not said what they are after this long are given up. */
  readonly timeoutMs: number
  readonly onTimeout: (socket: Socket) => void
}

/** Undefined while more bytes are needed to tell; else what is called with the connection to be handed on. */
export type Decide = (seen: Buffer) => (() => void) | undefined

interface Looking {
  readonly since: Instant
  readonly leave: () => void
}

/** Time between two looks at connections that are too slow, as at those of HTTP/1. */
const SLOW_CHECK_MS = 500

export class FirstBytesReader {
  readonly #options: FirstBytesOptions
  /** Oldest first; bounded by the connections that may be open. */
  readonly #looking = new Map<Socket, Looking>()
  #isChecking = false

  constructor(options: FirstBytesOptions) {
    this.#options = options
  }

  /** `decide` is asked with all bytes so far, and bounds them. */
  look(socket: Socket, decide: Decide): void {
    let seen: Buffer | undefined
    const take = (bytes: Buffer): void => {
      seen = seen === undefined ? bytes : Buffer.concat([seen, bytes])
      const go = decide(seen)
      if (go === undefined) return
      leave()
      go()
    }
    const end = (): void => {
      leave()
      socket.destroy()
    }
    const leave = (): void => {
      this.#looking.delete(socket)
      socket.off('data', take)
      socket.off('close', leave)
      socket.off('end', end)
      socket.off('error', ignore)
    }
    this.#looking.set(socket, { since: this.#options.clock.now(), leave })
    socket.on('close', leave)
    socket.on('end', end)
    socket.on('error', ignore)
    socket.on('data', take)
    // A step before this one may have paused it.
    socket.resume()
    if (!this.#isChecking) this.#checkLater()
  }

  #checkLater(): void {
    const { clock, timeoutMs } = this.#options
    this.#isChecking = true
    clock.at(clock.now() + msToUs(Math.min(SLOW_CHECK_MS, timeoutMs)), () => {
      this.#isChecking = false
      this.#giveUpSlow()
      if (this.#looking.size > 0) this.#checkLater()
    })
  }

  #giveUpSlow(): void {
    const { clock, timeoutMs, onTimeout } = this.#options
    const before = clock.now() - msToUs(timeoutMs)
    for (const [socket, { since, leave }] of this.#looking) {
      if (since > before) return
      leave()
      onTimeout(socket)
    }
  }
}

/** A client that hangs up before it has asked for anything is no fault of ours; 'close' follows. */
const ignore = (): void => {}

/** Gives bytes back to a connection, whose next reader finds them in front of all others. */
export function putBack(socket: Socket, bytes: Buffer): void {
  socket.pause()
  if (bytes.length > 0) socket.unshift(bytes)
}
