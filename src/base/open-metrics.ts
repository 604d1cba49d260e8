/**
 * OpenMetrics 1.0 from the text that our own registry writes (Prometheus format 0.0.4). The two differ in little: a
 * counter's head has no `_total`, quotes in a help text are escaped, and the last line says that it is the last.
 *
 * Bounds keep their spelling (`le="1"`, where OpenMetrics would rather have `1.0`), so that a series is the same one
 * whichever form a server is asked for.
 */
export const OPEN_METRICS_TYPE = 'application/openmetrics-text'

/** What is sent, for the Content-Type header. */
export const OPEN_METRICS_CONTENT_TYPE = `${OPEN_METRICS_TYPE}; version=1.0.0; charset=utf-8`

/** The two lines before a family's samples, as the registry writes them. */
const HEAD = /^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)$/gm

export function toOpenMetrics(text: string): string {
  const told = text.replaceAll(HEAD, (_, name: string, help: string, kind: string) => {
    const family = kind === 'counter' && name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name
    return `# HELP ${family} ${help.replaceAll('"', '\\"')}\n# TYPE ${family} ${kind}`
  })
  return `${told}# EOF\n`
}

const TOTAL = '_total'

/**
 * Whether an Accept header would rather have OpenMetrics 1.0 than text. Prometheus names every form that it reads, each
 * with a weight; another version than 1.0.0 is not ours.
 */
export function wantsOpenMetrics(accept = ''): boolean {
  if (!accept.includes(OPEN_METRICS_TYPE)) return false
  let open = 0
  let plain = 0
  for (const part of accept.toLowerCase().split(',')) {
    const [type, ...terms] = part.split(';').map((word) => word.trim())
    const weight = Number(termOf(terms, 'q') ?? 1)
    const version = termOf(terms, 'version')
    if (type === OPEN_METRICS_TYPE && (version === undefined || version === '1.0.0')) open = Math.max(open, weight)
    if (type === 'text/plain') plain = Math.max(plain, weight)
  }
  return open > 0 && open >= plain
}

const termOf = (terms: readonly string[], name: string): string | undefined =>
  terms.find((term) => term.startsWith(`${name}=`))?.slice(name.length + 1)
