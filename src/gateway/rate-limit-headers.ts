import type { RateLimitView } from '../policy/budgets/budgets.ts'

/**
 * `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` as OpenAI sends them, on answers and on refusals: the
 * tightest bucket that the caller spends from. No limit, no header.
 */
export function rateLimitHeaders(view: RateLimitView): string[] {
  const headers: string[] = []
  for (const kind of ['requests', 'tokens'] as const) {
    const bucket = view[kind]
    if (bucket === undefined) continue
    headers.push(`x-ratelimit-limit-${kind}`, String(bucket.limit))
    headers.push(`x-ratelimit-remaining-${kind}`, String(bucket.remaining))
    headers.push(`x-ratelimit-reset-${kind}`, durationOf(bucket.resetUs))
  }
  return headers
}

/**
 * `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`, as readers of Anthropic's interface expect them: the
 * time at which the bucket is full again, not how long that takes. `nowMs` is since 1970.
 */
export function anthropicRateLimitHeaders(view: RateLimitView, nowMs: number): string[] {
  const headers: string[] = []
  for (const kind of ['requests', 'tokens'] as const) {
    const bucket = view[kind]
    if (bucket === undefined) continue
    const resetAt = new Date(nowMs + Math.ceil(bucket.resetUs / 1_000)).toISOString()
    headers.push(`anthropic-ratelimit-${kind}-limit`, String(bucket.limit))
    headers.push(`anthropic-ratelimit-${kind}-remaining`, String(bucket.remaining))
    headers.push(`anthropic-ratelimit-${kind}-reset`, resetAt)
  }
  return headers
}

/** `6m0s`, `1.2s`, `20ms`: Go's way of writing durations, which is OpenAI's. */
export function durationOf(us: number): string {
  const ms = Math.ceil(us / 1_000)
  if (ms < 1_000) return `${ms}ms`
  const seconds = Math.ceil(ms / 100) / 10
  if (seconds < 60) return `${seconds}s`
  const whole = Math.ceil(seconds)
  const hours = Math.floor(whole / 3_600)
  const rest = `${Math.floor((whole % 3_600) / 60)}m${whole % 60}s`
  return hours === 0 ? rest : `${hours}h${rest}`
}
