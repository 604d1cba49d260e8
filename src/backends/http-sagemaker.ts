import type { Dispatcher } from 'undici'
import { sha256Hex, signedHeaders } from '../aws/signature.ts'
import type { Request } from '../domain/request.ts'
import { AwsEventStream, AwsFrameFault, type AwsMessage } from '../wire/aws-event-stream.ts'
import type { AwsKeys, CloudCredential } from '../wire/cloud-credential.ts'
import { containerAnswer } from '../wire/sagemaker-error.ts'
import { CredentialError, type FreshCredential } from './fresh-credential.ts'
import type { AnswerHeaders, Authorizer, OutgoingCall } from './http-authorized.ts'

/**
 * An endpoint of SageMaker whose container takes OpenAI's words at `/invocations`: vLLM, SGLang, LMI, TGI. What differs
 * from an engine that is called directly: calls are signed, one path is for streams and one for everything else, a stream
 * comes in AWS's frames, and the container's errors come inside of AWS's.
 *
 *     2xx, frames   ─▶ payloads, as if they had come by themselves
 *     2xx           ─▶ as it is
 *     an error      ─▶ collect (bounded) ─▶ the container's own status and words, where they are in it
 */
export interface SageMakerTerms {
  /** The endpoint: `https://runtime.sagemaker.REGION.amazonaws.com/endpoints/NAME`. */
  readonly url: string
  readonly region: string
  readonly now?: () => Date
}

export const sageMakerPath = ({ isStreamed }: Request): string =>
  isStreamed ? '/invocations-response-stream' : '/invocations'

/** The region in the service's own addresses, those of private endpoints among them. */
export const sageMakerRegion = (url: string): string | undefined =>
  /(?:^|\.)runtime(?:-fips)?\.sagemaker(?:-fips)?\.([a-z0-9-]+)\./.exec(new URL(url).hostname)?.[1]

/** The keys were good once, or are not known yet; everything else is a matter of permission. */
const STALE: ReadonlySet<string> = new Set([
  'ExpiredTokenException',
  'InvalidClientTokenId',
  'UnrecognizedClientException',
])

export function sageMakerAuthorizer(credential: FreshCredential, terms: SageMakerTerms): Authorizer {
  return {
    credential,
    headers: (held, call) => signatureOf(keysOf(held), call, terms),
    isRefusal: (status, headers) => status >= 400 && status < 500 && STALE.has(errorTypeOf(headers)),
  }
}

const today = (): Date => new Date()

function keysOf(credential: CloudCredential): AwsKeys {
  if (credential.kind === 'keys') return credential
  throw new CredentialError('its source gives a token, and this engine takes keys that sign')
}

function signatureOf(keys: AwsKeys, call: OutgoingCall, { url, region, now = today }: SageMakerTerms): string[] {
  const signed = signedHeaders({
    ...keys,
    method: call.method,
    url: new URL(call.path, url),
    bodyHash: sha256Hex(call.body),
    region,
    service: 'sagemaker',
    now: now(),
    headers: ownAws(call.headers),
  })
  const added = ['x-amz-content-sha256', 'x-amz-date', 'x-amz-security-token', 'authorization']
  return added.flatMap((name) => (signed[name] === undefined ? [] : [name, signed[name]]))
}

/** Headers that choose a variant or a component: nobody on the way may change them. */
function ownAws(headers: readonly string[]): Record<string, string> {
  const own: Record<string, string> = {}
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    if (name.startsWith('x-amz')) own[name] = headers[i + 1] as string
  }
  return own
}

/** `ModelError`, from a header that may have an address behind the word. */
const errorTypeOf = (headers: AnswerHeaders): string => String(headers['x-amzn-errortype'] ?? '').split(':')[0] ?? ''

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController

/** Most bytes of an error that are read. */
const ERROR_BYTES_MAX = 64 << 10
const FRAMES = /^application\/vnd\.amazon\.eventstream\b/i
const LF = 10

export class SageMakerAnswer implements Handler {
  readonly #inner: Handler
  #frames: AwsEventStream | undefined
  /** Set where the container streams one JSON document a line, without the words of an event stream: LMI does. */
  #lines: { isStart: boolean } | undefined
  #hasPayload = false
  #error: { readonly status: number; readonly headers: AnswerHeaders; readonly parts: Buffer[] } | undefined
  #errorBytes = 0
  #isOver = false

  constructor(inner: Handler) {
    this.#inner = inner
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#inner.onRequestStart?.(controller, context)
  }

  onResponseStart(controller: Controller, status: number, headers: Record<string, string | string[]>): void {
    if (status >= 300) this.#error = { status, headers, parts: [] }
    else if (FRAMES.test(String(headers['content-type'] ?? ''))) {
      this.#frames = new AwsEventStream()
      this.#inner.onResponseStart?.(controller, status, { 'content-type': 'text/event-stream' })
    } else this.#inner.onResponseStart?.(controller, status, headers)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#error !== undefined) {
      this.#errorBytes += chunk.length
      // A copy: the connection may read the next bytes into the same place.
      if (this.#errorBytes <= ERROR_BYTES_MAX) this.#error.parts.push(Buffer.from(chunk))
    } else if (this.#frames === undefined) this.#inner.onResponseData?.(controller, chunk)
    else {
      try {
        this.#frames.read(chunk, (message) => this.#take(controller, message))
      } catch (error) {
        if (!(error instanceof AwsFrameFault)) throw error
        this.#breakOff(controller, error.code)
      }
    }
  }

  onResponseEnd(controller: Controller, trailers: Record<string, string | string[]>): void {
    if (this.#isOver) return
    const error = this.#error
    if (error !== undefined) {
      const text = Buffer.concat(error.parts).toString('utf8')
      const { status, body } = containerAnswer(error.status, errorTypeOf(error.headers), text)
      this.#inner.onResponseStart?.(controller, status, error.headers as Record<string, string>)
      this.#inner.onResponseData?.(controller, Buffer.from(body))
    } else if (this.#frames?.isBetween === false) {
      this.#breakOff(controller, 'CUT_FRAME')
      return
    } else if (this.#lines?.isStart === false) {
      // The last line lacks its end.
      this.#inner.onResponseData?.(controller, Buffer.from('\n\n'))
    }
    this.#inner.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Controller, error: Error): void {
    if (!this.#isOver) this.#inner.onResponseError?.(controller, error)
  }

  #take(controller: Controller, { headers, payload }: AwsMessage): void {
    if (this.#isOver || controller.aborted) return
    if (headers.get(':message-type') !== 'event') {
      // Its name is AWS's; its words may quote the container.
      this.#breakOff(controller, headers.get(':exception-type') ?? headers.get(':error-code') ?? 'STREAM_ERROR')
    } else if (headers.get(':event-type') === 'PayloadPart' && payload.length > 0) {
      if (!this.#hasPayload && payload[0] === '{'.charCodeAt(0)) this.#lines = { isStart: true }
      this.#hasPayload = true
      this.#inner.onResponseData?.(controller, this.#lines === undefined ? payload : asEvents(payload, this.#lines))
    }
  }

  #breakOff(controller: Controller, code: string): void {
    this.#isOver = true
    const error = Object.assign(new Error('the stream broke off'), { code: code.slice(0, 64) })
    this.#inner.onResponseError?.(controller, error)
    controller.abort(error)
  }
}

/** Lines of JSON as an event stream. */
function asEvents(lines: Buffer, state: { isStart: boolean }): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < lines.length; ) {
    const lf = lines.indexOf(LF, at)
    const end = lf < 0 ? lines.length : lf
    if (state.isStart && end > at) parts.push(Buffer.from('data: '))
    parts.push(lines.subarray(at, end))
    if (lf >= 0) parts.push(Buffer.from('\n\n'))
    state.isStart = lf >= 0
    at = end + 1
  }
  return Buffer.concat(parts)
}
