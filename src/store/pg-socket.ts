import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { Socket } from 'node:net'

/**
 * Sockets to the database that ask for a name once at a time. Node looks names up in a few threads, which all
 * connections of the process share. Where the database and its name are gone, a look-up may take many seconds, and one
 * for every attempt to connect would take all threads: connections to engines would then wait for their own names.
 */
type Found = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void

type LookUp = (hostname: string, options: LookupOptions, found: Found) => void

/** Look-ups of one name with the same options, while one is under way, share its result. */
export class SharedLookUps {
  readonly #lookUp: LookUp
  readonly #waiting = new Map<string, Found[]>()

  constructor(lookUp: LookUp = lookup) {
    this.#lookUp = lookUp
  }

  ask(hostname: string, options: LookupOptions, found: Found): void {
    const key = `${hostname} ${options.family ?? 0} ${options.hints ?? 0} ${options.all ?? false}`
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) {
      waiting.push(found)
      return
    }
    const all = [found]
    this.#waiting.set(key, all)
    this.#lookUp(hostname, options, (error, address, family) => {
      this.#waiting.delete(key)
      for (const one of all) one(error, address, family)
    })
  }
}

const lookUps = new SharedLookUps()

class PgSocket extends Socket {
  /** pg calls it with a port and a host, or with the path of a socket file. */
  override connect(...words: unknown[]): this {
    const [port, host] = words
    if (typeof port !== 'number' || typeof host !== 'string') return super.connect(port as string)
    return super.connect({ port, host, lookup: (name, options, found) => lookUps.ask(name, options, found as Found) })
  }
}

export const makePgSocket = (): Socket => new PgSocket()
