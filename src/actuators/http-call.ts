import { readFile } from 'node:fs/promises'

/** One bounded HTTP call to an actuator or an exporter: no redirects, a time limit, and an answer of bounded size. */
export interface HttpCall {
  readonly url: string
  readonly method: 'GET' | 'PUT' | 'POST'
  readonly timeoutMs: number
  readonly body?: string
  /** File with the bearer token, read anew for every call, because such files are renewed. */
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly text: string
}

const BODY_BYTES_MAX = 4 << 20

/** Throws where the network or a file fails. */
export async function callOnce(call: HttpCall): Promise<HttpAnswer> {
  const { url, method, timeoutMs, body, tokenFile, caFile } = call
  const token = tokenFile === undefined ? undefined : (await readFile(tokenFile, 'utf8')).trim()
  const ca = caFile === undefined ? undefined : await readFile(caFile, 'utf8')
  // Loaded by the first call: the package takes as long as a hundred files of ours.
  const { Agent, request } = await import('undici')
  const dispatcher = new Agent({ connections: 1, ...(ca !== undefined && { connect: { ca } }) })
  try {
    const response = await request(url, {
      method,
      dispatcher,
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: 'application/json, text/plain',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body }),
    })
    return { status: response.statusCode, text: await bounded(response.body) }
  } finally {
    await dispatcher.destroy()
  }
}

async function bounded(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    if (bytes > BODY_BYTES_MAX) throw Object.assign(new Error('too long an answer'), { code: 'answer-too-long' })
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
