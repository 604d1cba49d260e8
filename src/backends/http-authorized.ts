import type { Dispatcher } from 'undici'
import type { CloudCredential, CloudToken } from '../wire/cloud-credential.ts'
import { CredentialError, type FreshCredential } from './fresh-credential.ts'

/**
 * Who says to a server that a call is ours, where that is more than one key for ever: a token that ends, or a signature of
 * the call itself. A call whose credential is refused is made once more with another one, if there is another one.
 */
export interface Authorizer {
  readonly credential: FreshCredential
  /** The headers of this call that say whose it is. */
  headers(credential: CloudCredential, call: OutgoingCall): readonly string[]
  /** Whether the server refused the credential, rather than what is asked with it. */
  isRefusal(status: number, headers: AnswerHeaders): boolean
  /** For keys that are configured: this is the secret from the next call on. */
  useKey?(apiKey: string | undefined): void
}

export interface OutgoingCall {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly headers: readonly string[]
  readonly body: string
}

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController
type Send = (headers: readonly string[], handler: Handler) => void

/** Most bytes of a refusal that are kept, for the case that it stands. */
const REFUSAL_BYTES_MAX = 64 << 10

export function bearerAuthorizer(credential: FreshCredential): Authorizer {
  return {
    credential,
    headers: (held) => ['authorization', `Bearer ${tokenOf(held).token}`],
    isRefusal: (status) => status === 401,
  }
}

function tokenOf(credential: CloudCredential): CloudToken {
  if (credential.kind === 'token') return credential
  throw new CredentialError('its source gives keys, and this engine takes a token')
}

/** The headers of one call, with those of its credential. */
export async function authorizedHeaders(
  authorizer: Authorizer,
  call: OutgoingCall,
): Promise<{ readonly credential: CloudCredential; readonly headers: string[] }> {
  const credential = await authorizer.credential.take()
  return { credential, headers: [...call.headers, ...authorizer.headers(credential, call)] }
}

/** Sends a call as soon as there is a credential for it. Without `isRepeatable` a refusal is not answered by another try. */
export function sendAuthorized(
  authorizer: Authorizer,
  call: OutgoingCall & { readonly isRepeatable: boolean },
  handler: Handler,
  send: Send,
): void {
  const fail = (error: unknown): void => handler.onResponseError?.(undefined as never, error as Error)
  const start = (credential: CloudCredential, outer: Handler): void => {
    let headers: string[]
    try {
      headers = [...call.headers, ...authorizer.headers(credential, call)]
    } catch (error) {
      fail(error)
      return
    }
    send(headers, outer)
  }
  const begin = (credential: CloudCredential): void => {
    if (!call.isRepeatable) start(credential, handler)
    else start(credential, new FirstTry(authorizer, credential, handler, (next) => start(next, handler)))
  }
  const taken = authorizer.credential.take()
  if (taken instanceof Promise) taken.then(begin, fail)
  else begin(taken)
}

interface Refused {
  readonly status: number
  readonly headers: AnswerHeaders
}

/** Passes everything on but a refused credential. */
class FirstTry implements Handler {
  readonly #authorizer: Authorizer
  readonly #credential: CloudCredential
  readonly #inner: Handler
  readonly #again: (next: CloudCredential) => void
  #refusal: Refused | undefined
  #parts: Buffer[] = []
  #bytes = 0

  constructor(
    authorizer: Authorizer,
    credential: CloudCredential,
    inner: Handler,
    again: (next: CloudCredential) => void,
  ) {
    this.#authorizer = authorizer
    this.#credential = credential
    this.#inner = inner
    this.#again = again
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#inner.onRequestStart?.(controller, context)
  }

  onResponseStart(controller: Controller, status: number, headers: Record<string, string | string[]>): void {
    if (this.#authorizer.isRefusal(status, headers)) this.#refusal = { status, headers }
    else this.#inner.onResponseStart?.(controller, status, headers)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#refusal === undefined) {
      this.#inner.onResponseData?.(controller, chunk)
      return
    }
    this.#bytes += chunk.length
    // A copy: the connection may read the next bytes into the same place.
    if (this.#bytes <= REFUSAL_BYTES_MAX) this.#parts.push(Buffer.from(chunk))
  }

  onResponseEnd(controller: Controller, trailers: Record<string, string | string[]>): void {
    const refusal = this.#refusal
    if (refusal === undefined) {
      this.#inner.onResponseEnd?.(controller, trailers)
      return
    }
    void this.#decide(controller, refusal)
  }

  async #decide(controller: Controller, { status, headers }: Refused): Promise<void> {
    const next = await this.#authorizer.credential.replace(this.#credential)
    if (next !== undefined) {
      this.#again(next)
      return
    }
    this.#inner.onResponseStart?.(controller, status, headers as Record<string, string>)
    for (const part of this.#parts) this.#inner.onResponseData?.(controller, part)
    this.#inner.onResponseEnd?.(controller, {})
  }

  onResponseError(controller: Controller, error: Error): void {
    this.#inner.onResponseError?.(controller, error)
  }
}
