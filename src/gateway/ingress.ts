import type { IncomingHttpHeaders } from 'node:http'
import { ChurningMap } from '../base/churning-map.ts'
import type { Clock } from '../base/clock.ts'
import { fnv1a32 } from '../base/rng.ts'
import { BREATHS_PER_TURN, SerialTurns } from '../base/serial-turns.ts'
import {
  ADDRESS_BURST_MAX,
  type IngressLimits,
  type IngressMeter,
  IngressMeters,
} from '../policy/budgets/ingress-allowance.ts'
import { tokenOf } from './authenticate.ts'
import { fixedRetryUs, type IngressCode, type ToldRefusal } from './error-table.ts'

/**
 * The allowance for being read at all (`ingress-allowance.ts`), for each request that comes in: whom it is charged to,
 * and what is said when there is none left. It also bounds the memory for bodies that are arriving, and gives large
 * bodies turns.
 *
 * A request with a key that has proved valid before is charged to that key, every other request to its address. So a
 * stranger who uses up the allowance of an address, or its wrong keys, stops neither the keys that are in use there nor
 * anybody at another address. Keys are remembered by a salted hash of 32 bits: enough to tell callers apart, and of no
 * use to a reader of the memory.
 */
export interface IngressOptions {
  readonly clock: Clock
  readonly limits: IngressLimits
  /** Largest body of any route. */
  readonly bodyBytesMax: number
  /** Lets everything run that waits for the event loop. */
  readonly breathe: () => Promise<void>
  /** A secret of this process. */
  readonly salt: string
  /** Called once a second at most for each code, because there may be thousands a second. */
  readonly onRefused?: (code: IngressCode, count: number) => void
}

/** Bodies of one caller that may be arriving at once: this many of the largest, but no more bytes than the next. */
const BODIES_PER_CALLER_MAX = 16
/** Bytes of one caller that may be arriving at once, where bodies may be large; four of the largest always may. */
const BYTES_PER_CALLER_MAX = 64 * 1024 * 1024
const BODIES_PER_CALLER_MIN = 4
/** Callers that may use that much memory at once: 256 MB by default. */
const CALLERS_AT_ONCE_MAX = 4

/** Bytes of one caller that may be arriving at once: 64 MiB by default. */
const bytesPerCaller = (bodyBytesMax: number): number =>
  Math.max(BODIES_PER_CALLER_MIN * bodyBytesMax, Math.min(BODIES_PER_CALLER_MAX * bodyBytesMax, BYTES_PER_CALLER_MAX))

/**
 * Bodies from this size on are scanned and parsed in turns of their own. Smaller ones take well under a millisecond, and
 * waiting for a turn would add to their latency.
 */
export const HEAVY_BODY_BYTES = 64 * 1_024

/** Tokens whose holders are remembered: a few hundred kilobytes. */
export const HOLDERS_MAX = 10_000

export class Ingress {
  readonly #options: IngressOptions
  readonly #keys: IngressMeters<number>
  readonly #addresses: IngressMeters<string>
  /** Whose token it is, both as hashes: a caller gets no further allowance with each new token of an issuer. */
  readonly #holders = new ChurningMap<number, number>()
  /** Refusals that have not been told, at most one entry for each code. */
  readonly #refused = new Map<IngressCode, number>()
  #bufferedBytes = 0
  readonly #turns: SerialTurns

  constructor(options: IngressOptions) {
    this.#options = options
    this.#turns = new SerialTurns(options.breathe, BREATHS_PER_TURN)
    this.#keys = new IngressMeters(options.limits)
    this.#addresses = new IngressMeters(options.limits, { burstMax: ADDRESS_BURST_MAX })
  }

  /** Takes one request from the allowance of its caller, before anything of it is looked at but its headers. */
  arrive({ req, clientAddress }: Arriving): Visit | ToldRefusal<IngressCode> {
    const now = this.#options.clock.now()
    const token = tokenOf(req.headers)
    const keyHash = token === undefined ? undefined : fnv1a32(this.#options.salt + token)
    const ofKey = keyHash === undefined ? undefined : this.#keys.find(this.#holders.get(keyHash) ?? keyHash)
    const address = addressGroup(clientAddress)
    if (ofKey === undefined && keyHash !== undefined) {
      const waitUs = this.#addresses.of(now, address).failedKeysWaitUs(now)
      if (waitUs !== undefined) return this.#refuse('ingress-failed-keys', waitUs)
    }
    const meter = ofKey ?? this.#addresses.of(now, address)
    const waitUs = meter.takeRequest(now)
    if (waitUs !== undefined) return this.#refuse('ingress-requests', waitUs)
    return new Visit(this, { meter, address, keyHash: ofKey === undefined ? keyHash : undefined })
  }

  /** A key was looked up: a valid one has its own allowance from now on, a wrong one is counted for its address. */
  noteKey({ address, keyHash }: Pick<VisitFacts, 'address' | 'keyHash'>, isValid: boolean, keyId?: string): void {
    const now = this.#options.clock.now()
    if (!isValid) this.#addresses.of(now, address).takeFailedKey(now)
    else if (keyHash !== undefined) this.#keys.of(now, keyId === undefined ? keyHash : this.#holderOf(keyHash, keyId))
  }

  /** Remembers whose token this is; the oldest makes room, and is charged to its address until it proves valid again. */
  #holderOf(tokenHash: number, keyId: string): number {
    if (this.#holders.size >= HOLDERS_MAX) {
      for (const oldest of this.#holders.keys()) {
        this.#holders.delete(oldest)
        break
      }
    }
    const holder = fnv1a32(`${this.#options.salt}\n${keyId}`)
    this.#holders.set(tokenHash, holder)
    return holder
  }

  takeBytes(meter: IngressMeter, bytes: number): ToldRefusal<IngressCode> | undefined {
    const waitUs = meter.takeBytes(this.#options.clock.now(), bytes)
    return waitUs === undefined ? undefined : this.#refuse('ingress-bytes', waitUs)
  }

  takeMoreBytes(meter: IngressMeter, bytes: number): void {
    meter.takeMoreBytes(this.#options.clock.now(), bytes)
  }

  /**
   * A body of this size is arriving; negative when it is over. Each caller is held to what it has announced. All
   * together are held to what has arrived (`buffer`), because announcing costs nothing and must not keep others out.
   */
  announce(meter: IngressMeter, bytes: number): ToldRefusal<IngressCode> | undefined {
    meter.announce(bytes)
    const isTooMuch = bytes > 0 && meter.announcedBytes > bytesPerCaller(this.#options.bodyBytesMax)
    return isTooMuch ? this.#refuse('ingress-bytes', SECOND_US) : undefined
  }

  /** Bytes have arrived and are in memory; negative when they are let go. */
  buffer(bytes: number): ToldRefusal<IngressCode> | undefined {
    this.#bufferedBytes += bytes
    const most = CALLERS_AT_ONCE_MAX * bytesPerCaller(this.#options.bodyBytesMax)
    return bytes > 0 && this.#bufferedBytes > most ? this.#refuse('ingress-full', SECOND_US) : undefined
  }

  /** Resolves in a later round of the event loop, after the turns of those that asked before. */
  turn(): Promise<void> {
    return this.#turns.next()
  }

  #refuse(code: IngressCode, retryAfterUs: number): ToldRefusal<IngressCode> {
    const { clock } = this.#options
    if (this.#refused.size === 0) clock.at(clock.now() + SECOND_US, () => this.#tellRefused())
    this.#refused.set(code, (this.#refused.get(code) ?? 0) + 1)
    const blame = code === 'ingress-full' ? 'platform' : 'tenant'
    return { code, because: BECAUSE[code], blame, retryAfterUs }
  }

  #tellRefused(): void {
    for (const [code, count] of this.#refused) this.#options.onRefused?.(code, count)
    this.#refused.clear()
  }

  /** For tests: callers and tokens that are remembered, and bytes that are buffered. */
  get view(): { readonly [what in 'keys' | 'addresses' | 'tokens' | 'bufferedBytes']: number } {
    const tokens = this.#holders.size
    return { keys: this.#keys.size, addresses: this.#addresses.size, tokens, bufferedBytes: this.#bufferedBytes }
  }
}

/** A request that comes in: an `Exchange`. */
export interface Arriving {
  readonly req: { readonly headers: IncomingHttpHeaders }
  readonly clientAddress: string | undefined
}

interface VisitFacts {
  readonly meter: IngressMeter
  readonly address: string
  /** The hash of a key that has not proved valid yet; undefined when it has, or when there is none. */
  readonly keyHash: number | undefined
}

/** One request at the ingress, from its headers to the end of its body. */
export class Visit {
  readonly #ingress: Ingress
  readonly #facts: VisitFacts
  #announcedBytes = 0
  #bufferedBytes = 0

  constructor(ingress: Ingress, facts: VisitFacts) {
    this.#ingress = ingress
    this.#facts = facts
  }

  noteKey(isValid: boolean, keyId?: string): void {
    if (!isValid || this.#facts.keyHash !== undefined) this.#ingress.noteKey(this.#facts, isValid, keyId)
  }

  /** Takes the bytes of a body: all that are announced, or each part as it comes. */
  expect(bytes: number): ToldRefusal<IngressCode> | undefined {
    const refusal = this.#ingress.takeBytes(this.#facts.meter, bytes)
    if (refusal !== undefined) return refusal
    this.#announcedBytes += bytes
    return this.#ingress.announce(this.#facts.meter, bytes)
  }

  /** Takes the bytes of a body that passes through: they are counted, but no memory waits for them. */
  pass(bytes: number): ToldRefusal<IngressCode> | undefined {
    return this.#ingress.takeBytes(this.#facts.meter, bytes)
  }

  /** Further bytes of such a body whose size was not told. */
  passMore(bytes: number): void {
    this.#ingress.takeMoreBytes(this.#facts.meter, bytes)
  }

  /** Bytes have arrived and are kept. */
  buffer(bytes: number): ToldRefusal<IngressCode> | undefined {
    this.#bufferedBytes += bytes
    return this.#ingress.buffer(bytes)
  }

  /** A heavy body is about to be scanned or parsed. */
  turn(): Promise<void> {
    return this.#ingress.turn()
  }

  /** The body is about to be parsed, or is given up. */
  release(): void {
    this.#ingress.announce(this.#facts.meter, -this.#announcedBytes)
    this.#ingress.buffer(-this.#bufferedBytes)
    this.#announcedBytes = 0
    this.#bufferedBytes = 0
  }
}

/** When bodies are in the way of bodies, a second brings room. Refusals are told as often. */
const SECOND_US = fixedRetryUs('ingress-full') as number

const BECAUSE: Readonly<Record<IngressCode, string>> = {
  'ingress-requests': 'more requests were sent than `server.ingress.requestsPerMinute` allows one key or address',
  'ingress-bytes': 'more bytes were sent than `server.ingress.bytesPerMinute` allows one key or address',
  'ingress-failed-keys':
    'more wrong keys came from this address than `server.ingress.failedKeysPerMinute` allows, so no new key is looked at',
  'ingress-full': 'too many large bodies are arriving at once',
}

/**
 * Addresses that belong to one customer of a network: an IPv4 address, or the first 64 bits of an IPv6 address, because
 * any home has all addresses behind these.
 */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return 'unknown'
  if (address.includes('.')) return address.slice(address.lastIndexOf(':') + 1)
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros =
    tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}
