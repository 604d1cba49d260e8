/**
 * What to compare with: each name stands for settings, so that `--compare fifo,vtc,spillway` runs one scenario under
 * several policies. `PATH=VALUE` compares with any other setting.
 *
 *   spillway     everything on, as configured
 *   drr          fair order alone: nobody is refused for lateness, nobody is degraded
 *   vtc          the same with virtual token counters (OSDI'24)
 *   round-robin  tenants in turn, whatever their requests cost
 *   fifo         first come, first served, in a queue as long as it gets
 *   bounded      first come, first served, in a short queue: what does not fit is refused
 *   codel        first come, first served, with CoDel dropping from a queue that stands
 *   gradient     first come, first served, behind a limit that is learned from latency
 *   no-ladder    everything on but degradation
 *   strict       strict priority by band and bid
 *   in-turn      everything on, but replicas are used in turn
 *   fewest       everything on, but the replica with fewest requests is used
 */
export const COMPARISONS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  spillway: {},
  'no-ladder': { 'platform.ladder.enabled': false },
  drr: unguarded('deficit-round-robin'),
  vtc: unguarded('virtual-token-counter'),
  'round-robin': unguarded('round-robin'),
  fifo: unguarded('fifo'),
  strict: unguarded('strict-priority'),
  'in-turn': { 'platform.routing.rule': 'round-robin' },
  fewest: { 'platform.routing.rule': 'fewest-requests' },
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
