import { invalidRequest } from '../wire/openai-error.ts'
import type { Exchange } from './exchange.ts'

/**
 * Answers requests that no route takes, with what to do: the nearest route, for a base URL without `/v1` or with a part
 * too much. Clients of Ollama's interface print a body of JSON as `[object Object]`, so they get text.
 */

/** Routes that are no client's business are not proposed. */
const PRIVATE = /^\/(admin|internal|metrics|console)(\/|$)/

/** Longest path that is repeated in an error. */
const SHOWN_MAX = 200

/** Parts of OpenAI's interface that are not here: whoever asks is not looking for a typing mistake. */
const ABSENT = /\/v1\/(assistants|batches|conversations|engines|fine_tuning|realtime|threads|uploads|videos)(?:\/|$)/

export function notFound(exchange: Exchange, path: string, methods: readonly string[], hint: string | undefined): void {
  const shown = path.length > SHOWN_MAX ? `${path.slice(0, SHOWN_MAX)}…` : path
  const { method } = exchange.req
  if (methods.length > 0) {
    const fault = invalidRequest(`Method ${method} is not allowed for ${shown}.`, null, 'method-not-allowed')
    exchange.sendFault(fault, ['allow', methods.join(', ')])
    return
  }
  const said = `Unknown request URL: ${method} ${shown}.${hint === undefined ? '' : ` Did you mean ${hint}?`}`
  if (/\/api\/\w/.test(path)) {
    const served = `${said} This server has OpenAI's interface, not Ollama's: GET /v1/models lists the models, POST /v1/chat/completions answers. Set the client's base URL to this server's address with /v1 at the end.\n`
    exchange.send(404, 'text/plain; charset=utf-8', served)
    return
  }
  const absent = ABSENT.exec(path)?.[1]
  const because = absent === undefined ? '' : ` This server has no ${absent}: /openapi.json lists what it has.`
  exchange.sendFault(invalidRequest(`${said}${because}`, null, 'unknown-url'))
}

/**
 * The path that has the most last segments in common with this one, the shortest of several. For `/chat/completions`
 * it is `/v1/chat/completions`; for `/v1/v1/models` it is `/v1/models`.
 */
export function nearestPath(path: string, known: readonly string[], basePath: string): string | undefined {
  const asked = segmentsOf(path.slice(0, SHOWN_MAX))
  let best: string | undefined
  let bestCount = 0
  for (const candidate of known) {
    if (candidate.endsWith('/*') || PRIVATE.test(candidate.slice(basePath.length))) continue
    const count = sameAtEnd(asked, segmentsOf(candidate))
    const isShorter = best !== undefined && candidate.length < best.length
    if (count > bestCount || (count === bestCount && count > 0 && isShorter)) {
      best = candidate
      bestCount = count
    }
  }
  return best
}

/** A missing or added plural is a typing mistake, not another route. */
const segmentsOf = (path: string): string[] =>
  path
    .toLowerCase()
    .split('/')
    .filter((segment) => segment !== '')
    .map((segment) => segment.replace(/s$/, ''))

function sameAtEnd(a: readonly string[], b: readonly string[]): number {
  let count = 0
  while (count < a.length && count < b.length && a.at(-1 - count) === b.at(-1 - count)) count++
  return count
}
