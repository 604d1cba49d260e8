import { type CancelTimer, type Clock, secondsToUs } from '../base/clock.ts'
import { detailOf } from '../base/detail-of.ts'
import type { IssuerTerms } from '../domain/identity.ts'
import { type KeySet, type KeySource, readKeys } from './read-keys.ts'

/**
 * The keys of one issuer. They are read in the background, so that no request waits for the issuer; while it cannot be
 * reached, the known keys stay. A token with an unknown key may mean that keys have been rotated: it causes one reading
 * that all such tokens wait for, and then none for a while, so that made-up key ids cannot be used to flood the issuer.
 */
export interface IssuerKeysOptions {
  readonly terms: IssuerTerms
  readonly source: KeySource
  readonly clock: Clock
  /** Told when the keys cannot be read, and when they can again: once each, not for every attempt. */
  readonly complain: (problem: string) => void
}

/** Between two readings that tokens or failures cause: a new key is seen after this long at the latest. */
export const READ_AGAIN_US = secondsToUs(10)

export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  #set: KeySet | undefined
  #epoch = 0
  #reading: Promise<void> | undefined
  #soughtAt = Number.NEGATIVE_INFINITY
  #isFailing = false
  #isClosed = false
  #timer: CancelTimer = () => {}

  constructor(options: IssuerKeysOptions) {
    this.#options = options
  }

  /** The keys as known at present. */
  get set(): KeySet | undefined {
    return this.#set
  }

  /** Changes when a key is no longer published: what was verified before may not be valid any more. */
  get epoch(): number {
    return this.#epoch
  }

  /** Reads the keys, and goes on doing so; resolves after the first attempt, whatever came of it. */
  start(): Promise<void> {
    return this.#read()
  }

  /**
   * Reads them again because a key is missing, unless that was done a moment ago. Readings in the background do not
   * count: the key may have been published right after one.
   */
  async seek(): Promise<void> {
    if (this.#reading !== undefined) return this.#reading
    const now = this.#options.clock.now()
    if (now - this.#soughtAt < READ_AGAIN_US || this.#isClosed) return
    this.#soughtAt = now
    await this.#read()
  }

  close(): void {
    this.#isClosed = true
    this.#timer()
  }

  #read(): Promise<void> {
    this.#reading ??= this.#attempt().finally(() => {
      this.#reading = undefined
      this.#plan()
    })
    return this.#reading
  }

  async #attempt(): Promise<void> {
    const { source, terms, complain } = this.#options
    try {
      this.#take(await readKeys(source, terms))
      if (this.#isFailing) complain(`the keys of the issuer ${terms.issuerId} can be read again.`)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) complain(this.#words(error))
      this.#isFailing = true
    }
  }

  #take(next: KeySet): void {
    for (const name of this.#set?.names ?? []) {
      if (next.names.has(name)) continue
      this.#epoch++
      break
    }
    this.#set = next
  }

  #plan(): void {
    this.#timer()
    if (this.#isClosed) return
    const { clock, terms } = this.#options
    const pauseUs = this.#isFailing ? Math.min(READ_AGAIN_US, terms.refreshUs) : terms.refreshUs
    this.#timer = clock.at(clock.now() + pauseUs, () => void this.#read())
  }

  #words(error: unknown): string {
    const kept = this.#set === undefined ? 'Its tokens get 503 until they can' : 'The known keys stay in force'
    return `the keys of the issuer ${this.#options.terms.issuerId} cannot be read: ${detailOf(error)}. ${kept}; trying again.`
  }
}
