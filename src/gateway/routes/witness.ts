import { makeCheck } from '../../wire/check.ts'
import { WITNESS_PATH, WitnessBody, witnessAnswer } from '../../wire/region.ts'
import { digestOfBearer, NO_VALID_KEY, type PeerDirectory } from '../authenticate.ts'
import type { Route } from '../http-server.ts'
import { bodyOf } from './admin.ts'

/** Keeps checkpoints of other gateways' audits, and answers with ours. */
export interface WitnessDesk {
  exchange(notes: readonly string[]): Promise<readonly string[]>
}

const BODY_BYTES_MAX = 1_048_576
const check = makeCheck(WitnessBody)

/** For the gateways of other regions only, as their outlooks are. */
export function witnessRoute(peers: PeerDirectory, desk: () => WitnessDesk | undefined): Route {
  return {
    method: 'POST',
    path: WITNESS_PATH,
    async handle(exchange) {
      const digest = digestOfBearer(exchange)
      const isPeer = digest !== undefined && peers.peerByHash(digest) !== undefined
      if (digest !== undefined) exchange.visit?.noteKey(isPeer)
      if (!isPeer) {
        exchange.sendRefusal(NO_VALID_KEY)
        return
      }
      const body = await bodyOf(exchange, BODY_BYTES_MAX, check)
      if (body === undefined) return
      // A gateway without an audit keeps nothing, and says so by an empty answer.
      exchange.sendJson(200, witnessAnswer((await desk()?.exchange(body.notes)) ?? []))
    },
  }
}
