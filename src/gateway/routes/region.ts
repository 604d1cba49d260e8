import { tellOutlooks } from '../../lifecycle/fleet/tell-outlook.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import { REGION_PATH, regionAnswer } from '../../wire/region.ts'
import { digestOfBearer, NO_VALID_KEY, type PeerDirectory } from '../authenticate.ts'
import type { Route } from '../http-server.ts'

/** How soon would a request begin here? Told to the gateways of other regions only. */
export function regionRoute(region: string, peers: PeerDirectory, platform: Platform): Route {
  return {
    method: 'GET',
    path: REGION_PATH,
    handle(exchange) {
      const digest = digestOfBearer(exchange)
      const isPeer = digest !== undefined && peers.peerByHash(digest) !== undefined
      if (digest !== undefined) exchange.visit?.noteKey(isPeer)
      if (!isPeer) exchange.sendRefusal(NO_VALID_KEY)
      else exchange.sendJson(200, regionAnswer(region, tellOutlooks(platform)))
    },
  }
}
