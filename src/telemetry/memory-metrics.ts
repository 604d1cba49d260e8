import type { MetricFeed } from './metric-feed.ts'

/** From one mebibyte, a few tokens of a small model, to 64 GiB, more than most GPUs have for keys and values. */
const KV_BOUNDS_BYTES = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536].map((mebibytes) => mebibytes * 2 ** 20)

/**
 * How much GPU memory did a request have at its end? Only requests that an engine worked on, and only in pools whose
 * bytes per token are known: simulated engines, and others with a declared `profile`.
 *
 * Bound: one series for each pool of the fleet; a pool that is removed takes its series with it.
 */
export function declareMemoryMetrics({ registry, on }: MetricFeed): void {
  const held = registry.histogram({
    name: 'spillway_request_kv_bytes',
    help: 'GPU memory of a request\u2019s keys and values when it settled.',
    labels: ['pool'],
    bounds: KV_BOUNDS_BYTES,
  })
  on('settled', ({ poolId, kvBytes }) => {
    if (poolId !== undefined && kvBytes !== undefined) held.with(poolId).observe(kvBytes)
  })
  on('fleet-changed', ({ what, name }) => {
    if (what === 'pool-removed') held.forget(name)
  })
}
