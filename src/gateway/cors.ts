import type { HttpRequest, HttpResponse } from './http-message.ts'

/**
 * Cross-origin requests (the Fetch standard, "CORS protocol"): which web pages may call the gateway from a browser, and
 * what they may read of its answers. Off unless `server.cors.origins` names origins.
 *
 * Pages never get at the administration: a page that a browser of an operator has open must not be able to try. Cookies
 * and client certificates of the browser are not allowed for (no `access-control-allow-credentials`): a caller is known
 * by the key that the page sends.
 */
export interface CorsOptions {
  /** Origins as browsers send them, `https://app.example`; `*` means all. None: no cross-origin request is answered. */
  readonly origins: readonly string[]
  /** Request headers that pages may send; `*` means any. */
  readonly headers: readonly string[]
}

/** Paths that no page of another origin may call, behind the base path. */
const NEVER_CROSS_ORIGIN = /^\/(admin|console|internal|metrics)(\/|$)/

/** What a page may read beside the body. The names are for browsers that do not know `*`. */
const EXPOSED = [
  'x-request-id',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  ...['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]),
  ...['model', 'release', 'rung', 'degraded', 'cache', 'passages', 'retrieval', 'ignored', 'stored', 'not-stored'].map(
    (what) => `x-spillway-${what}`,
  ),
  '*',
].join(', ')

/** Two hours, the most that Chromium remembers a preflight; others remember it longer or ask again. */
const PREFLIGHT_LIFE_S = '7200'

/** A browser lists a few dozen header names at most. */
const ASKED_HEADERS = /^[\w!#$%&'*+.^`|~, -]{1,2000}$/

export class Cors {
  readonly #origins: ReadonlySet<string>
  readonly #headers: string
  readonly #takesAnyHeader: boolean
  readonly #basePath: string

  constructor({ origins, headers }: CorsOptions, basePath: string) {
    this.#origins = new Set(origins)
    this.#headers = headers.join(', ')
    this.#takesAnyHeader = headers.includes('*')
    this.#basePath = basePath
  }

  /** Sets the headers of an answer that a page may read. Called for every request, before it is answered in any way. */
  admit({ headers: { origin } }: HttpRequest, res: HttpResponse, path: string): boolean {
    if (this.#isPrivate(path)) return false
    const isForAll = this.#origins.has('*')
    // Without it, a cache would give the answer for one origin to another.
    if (!isForAll) res.setHeader('vary', 'origin')
    if (origin === undefined || !(isForAll || this.#origins.has(origin))) return false
    res.setHeader('access-control-allow-origin', isForAll ? '*' : origin)
    res.setHeader('access-control-expose-headers', EXPOSED)
    return true
  }

  /** Headers that answer a preflight; undefined when the request is none. */
  preflight({ method, headers }: HttpRequest, methods: readonly string[]): string[] | undefined {
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return undefined
    const asked = headers['access-control-request-headers']
    const taken = this.#takesAnyHeader && asked !== undefined && ASKED_HEADERS.test(asked) ? asked : this.#headers
    return [
      'access-control-allow-methods',
      methods.join(', '),
      'access-control-allow-headers',
      taken,
      'access-control-max-age',
      PREFLIGHT_LIFE_S,
    ]
  }

  #isPrivate(path: string): boolean {
    return path.startsWith(this.#basePath) && NEVER_CROSS_ORIGIN.test(path.slice(this.#basePath.length))
  }
}
