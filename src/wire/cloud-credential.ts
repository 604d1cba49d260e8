/**
 * What a cloud, its command line tool or a file says that a caller may use: a token, or the keys that sign calls of AWS.
 * The shapes are those of metadata servers, of OAuth, of `az account get-access-token` and of AWS's `credential_process`;
 * a text that is not JSON is a token by itself.
 */
export type CloudCredential = CloudToken | AwsKeys

export interface CloudToken {
  readonly kind: 'token'
  readonly token: string
  /** Milliseconds since 1970; undefined when nothing is said. */
  readonly endsAtMs: number | undefined
}

export interface AwsKeys {
  readonly kind: 'keys'
  readonly accessKeyId: string
  readonly secretKey: string
  readonly sessionToken: string | undefined
  readonly endsAtMs: number | undefined
}

/** A token is one word of a header; those of Entra with many groups have several thousand characters. */
const WORD = /^[\x21-\x7e]{1,16384}$/

/** Undefined when the text is neither. */
export function readCloudCredential(text: string, nowMs: number): CloudCredential | undefined {
  const said = text.trim()
  if (!said.startsWith('{')) return WORD.test(said) ? { kind: 'token', token: said, endsAtMs: undefined } : undefined
  const json = parsed(said)
  const word = (...names: string[]): string | undefined =>
    names.map((name) => json[name]).find((value): value is string => typeof value === 'string' && WORD.test(value))
  const endsAtMs = endOf(json, nowMs)
  const [accessKeyId, secretKey] = [word('AccessKeyId'), word('SecretAccessKey')]
  if (accessKeyId !== undefined && secretKey !== undefined)
    return { kind: 'keys', accessKeyId, secretKey, sessionToken: word('SessionToken', 'Token'), endsAtMs }
  const token = word('access_token', 'accessToken', 'token')
  return token === undefined ? undefined : { kind: 'token', token, endsAtMs }
}

/** The secrets in it, which no message may have. */
export const secretsOf = (credential: CloudCredential): string[] =>
  credential.kind === 'token'
    ? [credential.token]
    : [credential.secretKey, ...(credential.sessionToken === undefined ? [] : [credential.sessionToken])]

function endOf(json: Readonly<Record<string, unknown>>, nowMs: number): number | undefined {
  const expiration = json['Expiration']
  // A date without a zone, as in the `expiresOn` of `az`, is the local time of another machine, perhaps.
  const ends = [
    Number(json['expires_on'] ?? Number.NaN) * 1_000,
    nowMs + Number(json['expires_in'] ?? Number.NaN) * 1_000,
    Date.parse(typeof expiration === 'string' ? expiration : ''),
  ]
  return ends.find(Number.isFinite)
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
