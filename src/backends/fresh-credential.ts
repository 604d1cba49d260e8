import { type CloudCredential, secretsOf } from '../wire/cloud-credential.ts'

/**
 * The credential that calls are made with now. It is fetched when the first call needs it, and again before it ends, once
 * for all calls; the old one is used meanwhile. Without one, calls wait for it, `WAIT_MS` at most.
 *
 *     take ─▶ held and young ─▶ at once
 *          ─▶ held, ends soon ─▶ at once, and the next one is fetched
 *          ─▶ none, or ended ─▶ after the fetch, or `CredentialError`
 *
 * A source that fails is left alone for a while, twice as long each time. A credential that a server refuses is replaced
 * before its end, but no more often than every `REPLACE_MS`: a server that accepts none must not make us ask for each call.
 */
export interface FreshOptions {
  /** Asks the source; bounded in time by itself. Rejects with a `CredentialError`. */
  readonly fetch: () => Promise<CloudCredential>
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Calls back after so many milliseconds. */
  readonly after: (ms: number, callback: () => void) => () => void
}

/** Why there is no credential, in our own words: what a source says may have a secret in it. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
}

export const FRESH_CREDENTIAL = {
  /** Part of its life after which the next one is fetched: an hour's token 12 minutes before its end. */
  renewRatio: 0.8,
  /** One that says nothing of its end is asked for again so often, and used until there is another. */
  unstatedMs: 60_000,
  /** It must last until it has arrived, by the clock of the server. */
  marginMs: 30_000,
  renewMsMin: 5_000,
  replaceMs: 5_000,
  waitMs: 10_000,
  pauseMs: 1_000,
  pauseMsMax: 60_000,
} as const

/** Replaced ones stay hidden: a late answer may quote them. */
const SECRETS_MAX = 16

interface Held {
  readonly credential: CloudCredential
  readonly renewAt: number
  readonly endsAt: number
}

export class FreshCredential {
  readonly #options: FreshOptions
  #held: Held | undefined
  #asking: Promise<CloudCredential> | undefined
  #askedAt = Number.NEGATIVE_INFINITY
  #failures = 0
  #failure: { readonly error: CredentialError; readonly until: number } | undefined
  #secrets: readonly string[] = []

  constructor(options: FreshOptions) {
    this.#options = options
  }

  /** All secrets that were used lately. */
  get secrets(): readonly string[] {
    return this.#secrets
  }

  take(): CloudCredential | Promise<CloudCredential> {
    const now = this.#options.now()
    const held = this.#held
    if (held === undefined || now >= held.endsAt) return this.#bounded(this.#ask(now))
    if (now >= held.renewAt) this.#ask(now).catch(() => {})
    return held.credential
  }

  /** The source has another one: what is held is not used again. */
  drop(): void {
    this.#held = undefined
  }

  /** Another one than this, which a server refused; undefined when there is none, and the refusal stands. */
  async replace(refused: CloudCredential): Promise<CloudCredential | undefined> {
    const now = this.#options.now()
    if (this.#asking === undefined) {
      if (this.#held?.credential !== refused) return this.#held?.credential
      if (now - this.#askedAt < FRESH_CREDENTIAL.replaceMs) return undefined
    }
    try {
      const next = await this.#bounded(this.#ask(now))
      return isSame(next, refused) ? undefined : next
    } catch {
      return undefined
    }
  }

  #ask(now: number): Promise<CloudCredential> {
    if (this.#asking !== undefined) return this.#asking
    if (this.#failure !== undefined && now < this.#failure.until) return Promise.reject(this.#failure.error)
    this.#askedAt = now
    this.#asking = this.#options
      .fetch()
      .then(
        (credential) => this.#hold(credential),
        (error: unknown) => this.#fail(error),
      )
      .finally(() => {
        this.#asking = undefined
      })
    return this.#asking
  }

  #hold(credential: CloudCredential): CloudCredential {
    const now = this.#options.now()
    const { renewRatio, unstatedMs, marginMs, renewMsMin } = FRESH_CREDENTIAL
    const lifeMs = credential.endsAtMs === undefined ? undefined : credential.endsAtMs - now
    if (lifeMs !== undefined && lifeMs <= 0) return this.#fail(new CredentialError('the credential has ended already'))
    // The margin is a part of a short life, or there would be nothing left of it.
    const endsAt = lifeMs === undefined ? Number.POSITIVE_INFINITY : now + lifeMs - Math.min(marginMs, lifeMs / 10)
    const renewAt = now + Math.max(renewMsMin, lifeMs === undefined ? unstatedMs : lifeMs * renewRatio)
    this.#held = { credential, endsAt, renewAt }
    this.#failure = undefined
    this.#failures = 0
    this.#secrets = [...new Set([...secretsOf(credential), ...this.#secrets])].slice(0, SECRETS_MAX)
    return credential
  }

  #fail(thrown: unknown): never {
    const { pauseMs, pauseMsMax } = FRESH_CREDENTIAL
    const error = thrown instanceof CredentialError ? thrown : new CredentialError('its source failed')
    const pause = Math.min(pauseMsMax, pauseMs * 2 ** Math.min(this.#failures++, 10))
    this.#failure = { error, until: this.#options.now() + pause }
    throw error
  }

  #bounded(asked: Promise<CloudCredential>): Promise<CloudCredential> {
    return new Promise((resolve, reject) => {
      const forget = this.#options.after(FRESH_CREDENTIAL.waitMs, () =>
        reject(new CredentialError('its source did not answer in time')),
      )
      asked.then(resolve, reject).finally(forget)
    })
  }
}

const isSame = (a: CloudCredential, b: CloudCredential): boolean =>
  JSON.stringify(secretsOf(a)) === JSON.stringify(secretsOf(b))
