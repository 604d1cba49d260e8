/**
 * Comparisons by name: each name stands for settings, so that `--compare fifo,vtc,spillway` runs one scenario under
 * several policies. `PATH=VALUE` compares with any other setting.
 *
 *   spillway     everything on, as configured
 *   drr          fair order alone: no request is refused as too late, none is degraded
 *   wfq          the same with weighted fair queueing
 *   vtc          the same with virtual token counters (OSDI'24)
 *   round-robin  tenants in turn, whatever their requests cost
 *   fifo         first come, first served, in a long queue
 *   bounded      first come, first served, in a short queue: what does not fit is refused
 *   codel        first come, first served, with CoDel dropping from a standing queue
 *   gradient     first come, first served, behind a limit learned from latency
 *   no-ladder    everything on but degradation
 *   strict       strict priority by band and bid
 *   in-turn      everything on, but replicas are used in turn
 *   fewest       everything on, but the replica with fewest requests is used
 *   predict      pools with `autoscale` scale by predicted demand
 *   hpa-queue    the same as Kubernetes' autoscaler does by requests, hpa-util by utilisation
 *   static       several gateways: each has its part of limits and room for ever
 *   fallback     several gateways: each uses the whole of them while the lease store is away
 */
export const COMPARISONS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  spillway: {},
  'no-ladder': { 'platform.ladder.enabled': false },
  drr: unguarded('deficit-round-robin'),
  wfq: unguarded('weighted-fair-queueing'),
  vtc: unguarded('virtual-token-counter'),
  'round-robin': unguarded('round-robin'),
  fifo: unguarded('fifo'),
  strict: unguarded('strict-priority'),
  'in-turn': { 'platform.routing.rule': 'round-robin' },
  fewest: { 'platform.routing.rule': 'fewest-requests' },
  predict: { 'platform.pools.*.autoscale.rule': 'predict' },
  'hpa-queue': { 'platform.pools.*.autoscale.rule': 'hpa-queue' },
  'hpa-util': { 'platform.pools.*.autoscale.rule': 'hpa-util', 'platform.pools.*.autoscale.utilisation': 0.7 },
  static: { 'gateways.way': 'static' },
  fallback: { 'gateways.way': 'fallback' },
  bounded: { ...unguarded('fifo'), 'platform.queue.requestsMax': 64 },
  codel: { ...unguarded('fifo'), 'platform.queue.discipline': 'codel' },
  gradient: { ...unguarded('fifo'), 'platform.pools.*.limit': { kind: 'gradient' } },
}

function unguarded(order: string): Record<string, unknown> {
  return {
    'platform.fairness.order': order,
    'platform.admission.mode': 'observe',
    'platform.ladder.enabled': false,
  }
}
