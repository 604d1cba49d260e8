import type { LiveCell } from './live-cell.ts'
import type { LiveSharing } from './live-sharing.ts'

/**
 * A secret that all gateways over one fleet have: kept by their database where they share one, else by their lease store
 * (one secret for all names). A gateway alone makes one at random, anew with every start.
 */
export function gatewaysSecret(
  name: string,
  cell: Pick<LiveCell, 'isShared' | 'secretOf'>,
  sharing: Pick<LiveSharing, 'tell' | 'salt'>,
): () => string {
  return cell.isShared || sharing.tell === undefined ? cell.secretOf(name) : sharing.salt
}
