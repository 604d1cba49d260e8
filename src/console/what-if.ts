/**
 * "What if": a shipped scenario with more or fewer replicas, or with another rate, beside the scenario as it is. Which
 * settings of the scenario an answer to that changes, and which figures of the two reports are compared.
 */
export interface WhatIfAsk {
  readonly scenario: string
  /** The model whose first pool gets `replicas`. */
  readonly model?: string
  readonly replicas?: number
  /** Multiplies everybody's rate. */
  readonly load?: number
  /** The tenant whose rate `tenantRate` multiplies. */
  readonly tenant?: string
  readonly tenantRate?: number
}

/** What can be changed in a scenario. */
export interface WhatIfScenario {
  readonly name: string
  readonly about: string
  readonly durationS: number
  readonly pools: ReadonlyArray<{ readonly model: string; readonly replicas: number }>
  readonly tenants: readonly string[]
}

/** Figures of one run; times in milliseconds, ratios between 0 and 1. */
export interface WhatIfFigures {
  readonly arrived: number
  readonly completed: number
  readonly refused: number
  readonly failed: number
  readonly degraded: number
  readonly goodRatio: number
  readonly tokensPerS: number
  readonly ttftP50Ms: number
  readonly ttftP95Ms: number
  readonly waitP95Ms: number
}

export interface WhatIfReport extends WhatIfFigures {
  /** The busiest tenants; others are left out. */
  readonly tenants: Readonly<Record<string, WhatIfFigures>>
}

const TENANTS_MAX = 20

type Tree = Readonly<Record<string, unknown>>

const treeOf = (value: unknown): Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Tree) : {}
const listOf = (value: unknown): readonly Tree[] => (Array.isArray(value) ? value.map(treeOf) : [])
const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)

/** The name under which the last recorded hour is asked for. */
export const RECORDED_HOUR = 'recorded-hour'

/** What can be changed when the recorded hour is played on this platform. */
export function describeRecorded(scenario: unknown): WhatIfScenario {
  const platform = treeOf(treeOf(scenario)['platform'])
  const tenants = listOf(platform['tenants']).map(({ id }) => String(id))
  const { pools, durationS } = describeScenario(RECORDED_HOUR, scenario)
  const about =
    'The last hour that was recorded (record.path), on the platform as it is configured, with simulated GPUs.'
  return { name: RECORDED_HOUR, about, durationS, pools, tenants: tenants.slice(0, TENANTS_LISTED_MAX) }
}

const TENANTS_LISTED_MAX = 200

export function describeScenario(name: string, scenario: unknown): WhatIfScenario {
  const tree = treeOf(scenario)
  const pools = listOf(treeOf(tree['platform'])['pools']).filter(({ replicas }) => typeof replicas === 'number')
  const streams = listOf(tree['workload']).filter(({ tenant }) => typeof tenant === 'string')
  return {
    name,
    about: typeof tree['about'] === 'string' ? tree['about'].trim() : '',
    durationS: numberOf(tree['durationS']),
    pools: pools.map(({ model, replicas }) => ({ model: String(model), replicas: numberOf(replicas) })),
    tenants: [...new Set(streams.map(({ tenant }) => String(tenant)))],
  }
}

/** The changes as `PATH=VALUE` of `spillway simulate --set`, or what cannot be asked of this scenario. */
export function whatIfSettings(
  scenario: unknown,
  ask: WhatIfAsk,
  isRecorded = false,
): { readonly set: string[] } | { problem: string } {
  const tree = treeOf(scenario)
  const set: string[] = []
  if (ask.replicas !== undefined) {
    const pools = listOf(treeOf(tree['platform'])['pools'])
    const place = pools.findIndex(
      ({ model, replicas }) => typeof replicas === 'number' && (ask.model === undefined || model === ask.model),
    )
    if (place < 0) return { problem: `The scenario has no pool of ${ask.model ?? 'any model'} to give replicas to.` }
    set.push(`platform.pools.${place}.replicas=${ask.replicas}`)
  }
  if (ask.load !== undefined) set.push(`load=${numberOf(tree['load'] ?? 1) * ask.load}`)
  if (ask.tenantRate !== undefined && isRecorded) {
    if (ask.tenant === undefined || ask.tenant === '') return { problem: 'Whose rate? Name a tenant.' }
    set.push(`traffic.${ask.tenant}=${ask.tenantRate}`)
  } else if (ask.tenantRate !== undefined) {
    const streams = listOf(tree['workload']).flatMap(({ tenant, arrivals }, place) =>
      tenant === ask.tenant ? [rateSetting(place, treeOf(arrivals), ask.tenantRate as number)] : [],
    )
    if (streams.length === 0) return { problem: `The scenario has no traffic of the tenant ${ask.tenant ?? '(none)'}.` }
    set.push(...streams)
  }
  if (set.length === 0) return { problem: 'Nothing is changed: give replicas, load, or a tenant with tenantRate.' }
  return { set }
}

function rateSetting(place: number, { ratePerS, sessions }: Tree, factor: number): string {
  const path = `workload.${place}.arrivals`
  if (typeof sessions === 'number') return `${path}.sessions=${Math.max(1, Math.round(sessions * factor))}`
  return `${path}.ratePerS=${numberOf(ratePerS) * factor}`
}

/** What is compared, out of a report of `spillway simulate --json`. */
export function whatIfReport(report: unknown): WhatIfReport {
  const tree = treeOf(report)
  const tenants = Object.entries(treeOf(tree['tenants'])).map(
    ([name, each]) => [name, figuresOf(treeOf(each))] as const,
  )
  const busiest = tenants.toSorted(([, a], [, b]) => b.arrived - a.arrived).slice(0, TENANTS_MAX)
  return { ...figuresOf(tree), tenants: Object.fromEntries(busiest) }
}

function figuresOf(tree: Tree): WhatIfFigures {
  const requests = treeOf(tree['requests'])
  const goodput = treeOf(tree['goodput'])
  const latency = treeOf(tree['latency'])
  const [ttft, wait] = [treeOf(latency['ttft']), treeOf(latency['wait'])]
  return {
    arrived: numberOf(requests['arrived']),
    completed: numberOf(requests['completed']),
    refused: numberOf(requests['shed']),
    failed: numberOf(requests['failed']),
    degraded: numberOf(tree['degraded']),
    goodRatio: numberOf(goodput['ratio']),
    tokensPerS: numberOf(goodput['tokensPerS']),
    ttftP50Ms: numberOf(ttft['p50']),
    ttftP95Ms: numberOf(ttft['p95']),
    waitP95Ms: numberOf(wait['p95']),
  }
}
