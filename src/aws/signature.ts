import { createHash, createHmac } from 'node:crypto'

/**
 * Signature version 4 of AWS, for calls of a bucket (S3's own, and what speaks it: MinIO, R2, Ceph) and of other services.
 * S3 alone wants a path as it is; everywhere else it is escaped a second time.
 */
export interface SignedCall {
  readonly method: 'DELETE' | 'GET' | 'POST' | 'PUT'
  readonly url: URL
  /** SHA-256 of the body, in hexadecimal. */
  readonly bodyHash: string
  readonly region: string
  /** Name of the service in the signature; S3's if absent. */
  readonly service?: string
  readonly accessKeyId: string
  readonly secretKey: string
  /** For keys that end. */
  readonly sessionToken?: string | undefined
  readonly now: Date
  /** Further headers, in lower case. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The headers to send, the signature among them. */
export function signedHeaders(call: SignedCall): Record<string, string> {
  const {
    method,
    url,
    bodyHash,
    region,
    accessKeyId,
    secretKey,
    now,
    headers = {},
    service = 's3',
    sessionToken,
  } = call
  const stamp = now.toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const day = stamp.slice(0, 8)
  const all: Record<string, string> = {
    ...headers,
    host: url.host,
    'x-amz-content-sha256': bodyHash,
    'x-amz-date': stamp,
    ...(sessionToken !== undefined && { 'x-amz-security-token': sessionToken }),
  }
  const names = Object.keys(all).sort()
  const canonical = [
    method,
    service === 's3' ? canonicalPath(url.pathname) : url.pathname.split('/').map(escaped).join('/'),
    canonicalQuery(url.searchParams),
    ...names.map((name) => `${name}:${(all[name] as string).trim()}`),
    '',
    names.join(';'),
    bodyHash,
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', stamp, scope, sha256Hex(canonical)].join('\n')
  const key = [service, 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${secretKey}`, day), region))
  const signature = createHmac('sha256', key).update(text).digest('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope},SignedHeaders=${names.join(';')},Signature=${signature}`
  return { ...all, authorization }
}

export const sha256Hex = (body: string | Uint8Array): string => createHash('sha256').update(body).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** Every byte but the unreserved ones, each once. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

const canonicalPath = (path: string): string =>
  path
    .split('/')
    .map((part) => escaped(decodeURIComponent(part)))
    .join('/')

const canonicalQuery = (words: URLSearchParams): string =>
  [...words]
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .sort()
    .join('&')
