import { cacheScopeOf, type Request } from '../domain/request.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { takesCacheSalt } from '../wire/engine-gauges.ts'

/**
 * Is this engine told the salt of a request's cache scope (`cache_salt`), so that tenants do not find each other's prompts
 * in its prefix cache?
 *
 *   auto     vLLM and SGLang, known by the configuration or by their page of metrics. One that refuses the salt before it
 *            ever took one (vLLM with its old engine, V0) is asked without, and from then on never with it
 *   always   every engine; a refusal stands, so no request goes without its salt
 *   never    none, but for a client that sends a salt of its own
 *
 * A client's own salt is never sent as it is: the salt of its scope, which has both, takes its place. A tenant that shares
 * its cache with all is sent without a salt.
 */
export type SaltWish = 'auto' | 'always' | 'never'

export interface EngineSaltOptions {
  readonly wish?: SaltWish
  /** The configuration names an engine that takes salts. */
  readonly isKnown?: boolean
  /** The salt of a scope. */
  readonly saltOf: (scope: string) => string
}

export class EngineSalt {
  readonly #wish: SaltWish
  readonly #saltOf: (scope: string) => string
  #isKnown: boolean
  #isTaken = false
  #isRefused = false

  constructor({ wish = 'auto', isKnown = false, saltOf }: EngineSaltOptions) {
    this.#wish = wish
    this.#isKnown = isKnown
    this.#saltOf = saltOf
  }

  /** Hears the engine's page of metrics. An engine that was known once stays known: one page may be cut short. */
  readPage(page: string): void {
    this.#isKnown ||= takesCacheSalt(page)
  }

  /** Asks with the request's salt, or with none (null). */
  async ask(request: Request, send: (salt: string | null) => Promise<Ending>): Promise<Ending> {
    const salt = this.#saltFor(request)
    const ending = await send(salt)
    if (salt === null) return ending
    if (ending.kind === 'finished') this.#isTaken = true
    const isOurWish = this.#wish === 'auto' && !hasOwnSalt(request)
    if (!isOurWish || this.#isTaken || !isRefusedFor(ending)) return ending
    const again = await send(null)
    if (again.kind === 'finished') this.#isRefused = true
    return again
  }

  #saltFor(request: Request): string | null {
    const isOwn = hasOwnSalt(request)
    if (!isOwn && (request.tenant.prefixCache === 'shared' || !this.#isTold)) return null
    return this.#saltOf(cacheScopeOf(request))
  }

  get #isTold(): boolean {
    if (this.#wish !== 'auto') return this.#wish === 'always'
    return this.#isKnown && !this.#isRefused
  }
}

const hasOwnSalt = ({ cacheSalt = '' }: Request): boolean => cacheSalt !== ''

/** Engines name the parameter that they do not take. */
function isRefusedFor(ending: Ending): boolean {
  if (ending.kind !== 'refused' || ending.refusal.blame !== 'request') return false
  return JSON.stringify(ending.refusal.told?.error ?? {}).includes('cache_salt')
}
