import { US_PER_MS } from '../base/clock.ts'
import { NANO_PER_USD } from '../domain/ledger.ts'
import type { PriceListSpec } from '../policy/money/price-list.ts'
import type { Settings } from './schema.ts'

/** The price lists as the policy knows them: dollars become whole nano-dollars. */
export function toPriceLists({ prices }: Pick<Settings, 'prices'>): PriceListSpec[] {
  return prices.map(({ version, from, org, models }) => ({
    version,
    from: from === undefined ? 0 : Date.parse(from) * US_PER_MS,
    orgId: org,
    prices: new Map(
      models.map(({ model, inputUsd, cachedUsd = inputUsd, outputUsd, requestUsd }) => [
        model,
        {
          inputNano: toNano(inputUsd),
          cachedNano: toNano(cachedUsd),
          outputNano: toNano(outputUsd),
          requestNano: toNano(requestUsd),
        },
      ]),
    ),
  }))
}

const toNano = (usd: number): number => Math.round(usd * NANO_PER_USD)
