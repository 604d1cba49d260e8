import { CredentialError } from './fresh-credential.ts'
import type { HttpUpstream, SmallCall } from './http-upstream.ts'

/** One bounded GET for a probe or a registry. A failure is a status of 0 and a word, never an exception. */
export interface Got {
  readonly status: number
  readonly text: string
}

const TIMEOUT_MS = 2_000
const BODY_BYTES_MAX = 4 << 20

/** `path` is from the server's root, because probes are beside the API, not under it. */
export function get(upstream: HttpUpstream, path: string, timeoutMs: number = TIMEOUT_MS): Promise<Got> {
  return exchangeOnce(upstream, { path, method: 'GET', headers: upstream.headers() }, timeoutMs)
}

/** One bounded POST of JSON, in the same way. */
export function post(upstream: HttpUpstream, path: string, json: string, timeoutMs: number): Promise<Got> {
  return exchangeOnce(upstream, { path, method: 'POST', headers: upstream.headers(), body: json }, timeoutMs)
}

/** One bounded PUT without a body, in the same way. */
export function put(upstream: HttpUpstream, path: string, timeoutMs: number): Promise<Got> {
  return exchangeOnce(upstream, { path, method: 'PUT', headers: upstream.headers() }, timeoutMs)
}

async function exchangeOnce(upstream: HttpUpstream, asked: SmallCall, timeoutMs: number): Promise<Got> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await upstream.request({ ...asked, signal })
    const parts: Buffer[] = []
    let bytes = 0
    for await (const part of response.body) {
      parts.push(part as Buffer)
      bytes += (part as Buffer).length
      if (bytes > BODY_BYTES_MAX) {
        response.body.destroy()
        break
      }
    }
    return { status: response.statusCode, text: Buffer.concat(parts).toString('utf8') }
  } catch (error) {
    if (error instanceof CredentialError) return { status: 0, text: `no credential: ${error.message}` }
    return { status: 0, text: (error as { code?: string }).code ?? (error as Error).name }
  }
}

export const isOk = ({ status }: Got): boolean => status >= 200 && status < 300
