import type { Outlook } from '../domain/outlook.ts'
import type { ReplicaReport } from '../lifecycle/ports.ts'

/**
 * The report of another region's gateway, as the report of the pool that stands for it here; the same live and
 * simulated.
 */
export function peerReport(outlooks: ReadonlyMap<string, Outlook>, model: string, roundTripUs: number): ReplicaReport {
  const outlook = outlooks.get(model)
  if (outlook === undefined) return { isReady: false, because: `the region does not have ${model}` }
  const isReady = outlook.readyReplicaCount > 0
  const because = isReady ? 'the region answers' : `no replica of ${model} is ready there`
  return { isReady, because, outlook, roundTripUs }
}
