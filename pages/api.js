// Calls of the console: the admin API and a tenant's own routes, with the session in a key's place.
const ROOT = new URL('.', import.meta.url).pathname.replace(/\/$/, '')

export class CallError extends Error {}

export async function call(path, { method = 'GET', body } = {}) {
  const response = await fetch(`${ROOT}${path}`, {
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  let read
  try {
    read = JSON.parse(text)
  } catch {
    read = undefined
  }
  if (!response.ok) throw new CallError(read?.error?.message ?? `The server answered ${response.status}.`)
  return read
}

/** The feed: a snapshot, then a message every second. The browser comes again by itself when it breaks. */
export function watch(onView, onState) {
  const source = new EventSource(`${ROOT}/feed`)
  const take = (isSnapshot) => (event) => {
    onState('live')
    onView(JSON.parse(event.data), isSnapshot)
  }
  source.addEventListener('snapshot', take(true))
  source.addEventListener('delta', take(false))
  source.onerror = () => onState('away')
  return () => source.close()
}

/** A call whose answer comes line by line; `signal` ends it. The last line is the result. */
export async function callLines(path, body, onLine, signal) {
  const response = await fetch(`${ROOT}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  })
  if (!response.ok) {
    const read = await response.json().catch(() => undefined)
    throw new CallError(read?.error?.message ?? `The server answered ${response.status}.`)
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let [begun, last] = ['', undefined]
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return last
    const lines = (begun + value).split('\n')
    begun = lines.pop()
    for (const line of lines) {
      last = JSON.parse(line)
      onLine(last)
    }
  }
}
