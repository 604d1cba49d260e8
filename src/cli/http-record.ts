import { AdminRefused, UsageError } from './command.ts'
import type { ServerAccess } from './http-explain.ts'

/** The lines of a recording as the running server sends them; ends when `stop` does, or when the server ends it. */
export async function* streamRecording({ url, key }: ServerAccess, stop: Promise<void>): AsyncGenerator<string> {
  const abort = new AbortController()
  void stop.then(() => abort.abort())
  const response = await connect(`${url}/admin/v1/recording`, key, abort.signal, url)
  if (response === undefined) return
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const piece of response) {
      const lines = (rest + decoder.decode(piece as Uint8Array, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line !== '') yield line
    }
  } catch (error) {
    if (abort.signal.aborted) return
    throw new AdminRefused(
      `the server at ${url} broke the recording off (${reasonOf(error)}). What came is in the file.`,
    )
  } finally {
    abort.abort()
  }
}

async function connect(
  address: string,
  key: string,
  signal: AbortSignal,
  url: string,
): Promise<AsyncIterable<unknown> | undefined> {
  let response: Response
  try {
    response = await fetch(address, { headers: { authorization: `Bearer ${key}` }, signal })
  } catch {
    if (signal.aborted) return undefined
    throw new UsageError(`no server answers at ${url}. Start one with "spillway serve", or give --url.`)
  }
  if (response.ok && response.body !== null && response.headers.get('content-type') === 'application/x-ndjson') {
    return response.body as unknown as AsyncIterable<unknown>
  }
  if (response.status === 401) {
    throw new UsageError('the server does not know this admin key. Give --key, or set SPILLWAY_ADMIN_KEY.')
  }
  throw new AdminRefused(`the server answered ${response.status}: ${await messageOf(response)}`)
}

async function messageOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error?: { message?: string } }
    return error?.message ?? 'no reason'
  } catch {
    return 'it is not Spillway, or too old to record. Give --url.'
  }
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string } }
  return cause?.code ?? message
}
/** Ends when `stop` does, or after this many seconds. */
export function stopAfter(
  stop: Promise<void>,
  seconds: number | undefined,
): { readonly stop: Promise<void>; readonly forget: () => void } {
  if (seconds === undefined) return { stop, forget: () => {} }
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, seconds * 1_000)
  })
  return { stop: Promise.race([stop, over]), forget: () => clearTimeout(timer) }
}
