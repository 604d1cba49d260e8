import { sha256Hex, signedHeaders } from './signature.ts'

/**
 * Calls of an AWS service that speaks the JSON protocol, version 1.1: one address, the operation in a header, signed.
 * Every call is bounded in time; one that is throttled, or that the service cannot answer now, is made again a few times.
 *
 * Failures are values, and never contain the service's words or our credential.
 */
export interface AwsService {
  /** `https://api.sagemaker.eu-central-1.amazonaws.com`, or a VPC endpoint's address. */
  readonly url: string
  readonly region: string
  /** Name of the service in signatures. */
  readonly service: string
  /** What stands before the operation in `x-amz-target`. */
  readonly target: string
  readonly credential: AwsCredential
  readonly now: () => Date
  readonly timeoutMs?: number
  /** Pauses before the call is made again. */
  readonly pausesMs?: readonly number[]
}

export interface AwsCredential {
  readonly accessKeyId: string
  readonly secretKey: string
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined
}

export type AwsAnswer =
  | { readonly kind: 'answered'; readonly body: Readonly<Record<string, unknown>> }
  /** `code`: the service's own, as `AccessDeniedException`; absent where no readable answer came. */
  | { readonly kind: 'failed'; readonly code?: string; readonly because: string }

const TIMEOUT_MS = 10_000
const PAUSES_MS = [250, 1_000, 4_000]
/** An answer beyond this is none of a registry's. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024
const THROTTLED = /^(Throttl\w*|TooManyRequests\w*|RequestLimitExceeded|RequestThrottled\w*|SlowDown)$/

export async function callAws(aws: AwsService, operation: string, body: object): Promise<AwsAnswer> {
  for (const pauseMs of [...(aws.pausesMs ?? PAUSES_MS), undefined]) {
    const { isWorthwhile, ...answer } = await callOnce(aws, operation, JSON.stringify(body))
    if (!isWorthwhile || pauseMs === undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return { kind: 'failed', because: 'the service does not answer' }
}

/** `isWorthwhile`: the same call may go well a little later. */
type Tried = AwsAnswer & { readonly isWorthwhile: boolean }

async function callOnce(aws: AwsService, operation: string, body: string): Promise<Tried> {
  const { region, service, target, credential, now, timeoutMs = TIMEOUT_MS } = aws
  const url = new URL(aws.url)
  const headers = {
    'content-type': 'application/x-amz-json-1.1',
    'x-amz-target': `${target}.${operation}`,
  }
  const bodyHash = sha256Hex(body)
  const signed = signedHeaders({ method: 'POST', url, bodyHash, region, service, ...credential, now: now(), headers })
  const { host: _host, ...sent } = signed
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    // Loaded by the first call: the package takes as long as a hundred files of ours.
    const { request } = await import('undici')
    const answer = await request(url, { method: 'POST', headers: sent, body, signal })
    const text = await textOf(answer.body)
    return readAnswer(answer.statusCode, text, answer.headers['x-amzn-errortype'])
  } catch (error) {
    const because = `the service could not be asked: ${(error as { code?: string }).code ?? (error as Error).name}`
    return { kind: 'failed', because, isWorthwhile: true }
  }
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    if (bytes > ANSWER_BYTES_MAX) throw new RangeError('too long')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function readAnswer(status: number, text: string, told: string | string[] | undefined): Tried {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    body = undefined
  }
  const document = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : undefined
  if (status === 200) {
    if (document !== undefined) return { kind: 'answered', body: document, isWorthwhile: false }
    return { kind: 'failed', because: 'the service sent something that is not an object', isWorthwhile: false }
  }
  // `com.amazon.coral.service#ThrottlingException`, or with a colon and an address behind it.
  const type = [told, document?.['__type']].find((one) => typeof one === 'string') ?? ''
  const [, code] = /(?:^|#)([A-Za-z]{1,64})(?::|$)/.exec(type) ?? []
  const isWorthwhile = status >= 500 || status === 429 || (code !== undefined && THROTTLED.test(code))
  const because = `the service answered ${status}${code === undefined ? '' : ` ${code}`}`
  return { kind: 'failed', ...(code !== undefined && { code }), because, isWorthwhile }
}
