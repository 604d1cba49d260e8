import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import { type Clock, type Instant, secondsToUs } from '../base/clock.ts'

/**
 * Who looks at the console. A session is a cookie that no script can read: the digest of a key and an end, sealed with a
 * secret that the gateways of a cell have in common (AES-256-GCM), so that every one of them knows it and none keeps it.
 * It stands for a key by its digest: a key that is revoked ends its sessions.
 *
 * A session that was left ends here. Another gateway would still know the cookie, which the browser has thrown away.
 */
export interface ConsoleSession {
  readonly digest: string
  readonly expiresAt: Instant
}

export interface ConsoleSessionsOptions {
  readonly clock: Clock
  /** The same at every gateway of the cell; asked each time, because a gateway may hear it late. */
  readonly secret: () => string
  /** 256 bits from the system's randomness, in base64url. */
  readonly makeId: () => string
}

const SESSION_US = secondsToUs(12 * 3_600)
/** Sessions that were left and remembered, the newest: people, not machines, have sessions. */
const ENDED_MAX = 1_000
/** Letters of the cookie's value, at most. */
const ID_LENGTH_MAX = 256
const IV_BYTES = 12
const TAG_BYTES = 16

export const CONSOLE_COOKIE = 'spillway_console'

export class ConsoleSessions {
  readonly #options: ConsoleSessionsOptions
  readonly #ended = new Set<string>()

  constructor(options: ConsoleSessionsOptions) {
    this.#options = options
  }

  begin(digest: string): string {
    const expiresAt = this.#options.clock.now() + SESSION_US
    const iv = Buffer.from(this.#options.makeId(), 'base64url').subarray(0, IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key(), iv)
    const sealed = Buffer.concat([cipher.update(JSON.stringify({ digest, expiresAt })), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** The session of a request's cookies; undefined when it has none, or one that has ended. */
  of(cookies: string | undefined): ConsoleSession | undefined {
    const id = idIn(cookies)
    if (id === undefined || this.#ended.has(id)) return undefined
    const session = this.#open(id)
    return session !== undefined && session.expiresAt > this.#options.clock.now() ? session : undefined
  }

  end(cookies: string | undefined): void {
    const id = idIn(cookies)
    if (id === undefined) return
    const oldest = this.#ended.size >= ENDED_MAX ? this.#ended.values().next().value : undefined
    if (oldest !== undefined) this.#ended.delete(oldest)
    this.#ended.add(id)
  }

  /** The header that gives a browser its session, or takes it away. */
  cookie(id: string, path: string, isSecure: boolean): string {
    const age = id === '' ? 0 : SESSION_US / 1_000_000
    return `${CONSOLE_COOKIE}=${id}; Path=${path}; Max-Age=${age}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
  }

  #open(id: string): ConsoleSession | undefined {
    const bytes = Buffer.from(id, 'base64url')
    // One spelling for each session: the end of a session must not be avoided by another one.
    if (bytes.length <= IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== id) return undefined
    try {
      const cipher = createDecipheriv('aes-256-gcm', this.#key(), bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      })
      cipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const text = Buffer.concat([cipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), cipher.final()]).toString()
      return JSON.parse(text) as ConsoleSession
    } catch {
      // Not sealed with this secret.
      return undefined
    }
  }

  #key(): Buffer {
    return hash('sha256', `spillway console session ${this.#options.secret()}`, 'buffer')
  }
}

function idIn(cookies: string | undefined): string | undefined {
  for (const part of (cookies ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2)
    if (name === CONSOLE_COOKIE && value !== undefined && value !== '' && value.length <= ID_LENGTH_MAX) return value
  }
  return undefined
}
