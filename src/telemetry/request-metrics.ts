import type { MetricFeed } from './metric-feed.ts'
import { TopLabels, type TopLabelsOptions } from './top-labels.ts'

/** Tokens of volume that a request counts for, so that a tenant whose requests are all refused still gets a label. */
const REQUEST_VOLUME = 100

/** Series of tenants × models × outcomes × codes. Only this family is that wide; a counter's line is 100 bytes. */
const REQUEST_SERIES_MAX = 5_000

/** How much was asked and answered, for whom? The only metrics with a tenant in them. */
export function declareRequestMetrics({ registry, on }: MetricFeed, tenantOptions: TopLabelsOptions = {}): void {
  const requests = registry.counter({
    name: 'spillway_requests_total',
    help: "Settled requests, by outcome; code is the refusal's code, or none.",
    labels: ['tenant', 'model', 'outcome', 'code'],
    seriesMax: REQUEST_SERIES_MAX,
  })
  const tokens = registry.counter({
    name: 'spillway_tokens_total',
    help: 'Tokens as counted by the engine; cached tokens are part of the prompt tokens.',
    labels: ['tenant', 'model', 'kind'],
  })
  const promises = registry.counter({
    name: 'spillway_promises_total',
    help: 'Admitted requests by whether their promise was kept: first token, between tokens, whole answer.',
    labels: ['tenant', 'model', 'kept'],
  })
  const tenants = new TopLabels({
    ...tenantOptions,
    onForget: (tenant) => {
      requests.forget(tenant)
      tokens.forget(tenant)
      promises.forget(tenant)
    },
  })
  on('settled', (entry) => {
    const { promptTokens, cachedTokens, outputTokens } = entry.usage
    const tenant = tenants.observe(entry.at, entry.tenantId, REQUEST_VOLUME + promptTokens + outputTokens)
    requests.with(tenant, entry.model, entry.outcome, entry.refusal?.code ?? 'none').inc()
    if (entry.isKept !== undefined) promises.with(tenant, entry.model, entry.isKept ? 'yes' : 'no').inc()
    if (promptTokens > 0) tokens.with(tenant, entry.servedModel, 'prompt').inc(promptTokens)
    if (cachedTokens > 0) tokens.with(tenant, entry.servedModel, 'cached').inc(cachedTokens)
    if (outputTokens > 0) tokens.with(tenant, entry.servedModel, 'output').inc(outputTokens)
  })
}
