import { tellOutlooks } from '../../lifecycle/fleet/tell-outlook.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import { REGION_PATH, regionAnswer } from '../../wire/region.ts'
import { digestOf, NO_VALID_KEY, type PeerDirectory, tokenOf } from '../authenticate.ts'
import type { Route } from '../http-server.ts'

/** How soon would a request begin here? Told to the gateways of other regions only. */
export function regionRoute(region: string, peers: PeerDirectory, platform: Platform): Route {
  return {
    method: 'GET',
    path: REGION_PATH,
    handle(exchange) {
      const token = tokenOf(exchange.req.headers.authorization)
      if (token === undefined || peers.peerByHash(digestOf(token)) === undefined) exchange.sendRefusal(NO_VALID_KEY)
      else exchange.sendJson(200, regionAnswer(region, tellOutlooks(platform)))
    },
  }
}
