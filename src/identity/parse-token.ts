/**
 * A signed token in its parts (RFC 7515, 7.1), before anything of it is believed. Each part is parsed once, and every
 * later step looks at the same values: a name that is there twice cannot mean one thing to one check and another to the
 * next (RFC 7519, 4: the last one counts).
 */
export interface ParsedToken {
  readonly header: TokenPart
  readonly claims: TokenPart
  /** The bytes that are signed, and the signature. */
  readonly signed: Buffer
  readonly signature: Buffer
}

export type TokenPart = Readonly<Record<string, unknown>>

const BASE64URL = /^[\w-]+$/

/** Undefined: this is no token, though it may have two dots. */
export function parseToken(text: string): ParsedToken | undefined {
  const parts = text.split('.', 4)
  const [head, body, tail] = parts as [string, string, string]
  if (parts.length !== 3) return undefined
  const header = objectIn(head)
  const claims = objectIn(body)
  if (header === undefined || claims === undefined) return undefined
  return {
    header,
    claims,
    signed: Buffer.from(`${head}.${body}`, 'latin1'),
    signature: bytesIn(tail) ?? Buffer.alloc(0),
  }
}

function objectIn(part: string): TokenPart | undefined {
  const bytes = bytesIn(part)
  if (bytes === undefined) return undefined
  try {
    const value: unknown = JSON.parse(UTF8.decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as TokenPart) : undefined
  } catch {
    return undefined
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Base64url in its one correct form: Node reads many others, and each would be the same token under another hash. */
function bytesIn(part: string): Buffer | undefined {
  if (!BASE64URL.test(part)) return undefined
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}
