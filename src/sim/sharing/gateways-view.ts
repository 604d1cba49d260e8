import type { FairnessFigures } from './fleet-fairness.ts'
import type { BudgetFigures } from './fleet-laws.ts'
import type { SharingWay } from './shared-budgets.ts'

/** The part of a report that is about several gateways over one fleet. */
export interface GatewaysView {
  readonly count: number
  readonly way: SharingWay
  /** Most turns of all gateways at a replica ÷ its limit; the same in KV tokens. */
  readonly inFlightOfLimit: number
  readonly kvOfLimit: number
  /** By tenant and kind of budget. */
  readonly budgets: Readonly<Record<string, BudgetFigures>>
  /** Of the two tenants that were served most unequally while both waited; absent where no two ever did. */
  readonly fairness?: FairnessFigures
  readonly byName: Readonly<Record<string, GatewayTally>>
  readonly storeCalls: number
  readonly storeCallsLost: number
}

export interface GatewayTally {
  arrived: number
  completed: number
  shed: number
  granted: number
}

export function gatewayLines(view: GatewaysView): string[] {
  const { count, way, inFlightOfLimit, kvOfLimit, budgets, byName, fairness } = view
  const percent = (ratio: number): string => `${(100 * ratio).toFixed(1)} %`
  const lines = [
    `gateways  ${count}, ${way}; at most ${percent(inFlightOfLimit)} of a replica’s limit in flight, ${percent(kvOfLimit)} of its KV memory held`,
  ]
  if (fairness !== undefined)
    lines.push(
      `          two tenants that waited were served ${Math.round(fairness.apart)} apart per weight at most (bound ${Math.round(fairness.bound)})`,
    )
  const names = Object.entries(byName)
  for (const [name, { arrived, granted, completed, shed }] of names.slice(0, NAMES_MAX))
    lines.push(`          ${name}: ${arrived} arrived, ${granted} turns, ${completed} done, ${shed} shed`)
  if (names.length > NAMES_MAX) lines.push(`          … ${names.length - NAMES_MAX} more`)
  for (const [name, { over, bound, usedRatio }] of Object.entries(budgets).slice(0, NAMES_MAX))
    lines.push(
      `budget    ${name}: ${over} over rate and burst at most (bound ${bound}), ${percent(usedRatio)} of the rate used`,
    )
  return lines
}

/** Rows listed: enough for a screen; --json has all of them. */
const NAMES_MAX = 12
