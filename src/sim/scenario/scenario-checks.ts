import type { Problem } from '../../config/explain.ts'
import { nearest } from '../../config/nearest.ts'
import { toPools } from '../../config/to-domain.ts'
import { RETRIEVAL_PARTS } from '../retrieval-world.ts'
import { gatewayNamesOf } from '../sharing/shared-world.ts'
import type { Expectation, Fault, Lengths, Scenario, StreamSpec } from './scenario.ts'
import { chatModelsOf, type ScenarioConfig } from './scenario-config.ts'

/**
 * Checks of a scenario that a schema cannot make: unknown names, stretches of time that end before they begin, settings
 * without effect, expectations that could not fail.
 */
type Place = Problem['path']

export function crossCheckScenario(scenario: Scenario, { config, groupOf }: ScenarioConfig): Problem[] {
  const tenants = [...new Set([...config.tenants.map(({ id }) => id), ...groupOf.values()])]
  // Simulated clients have conversations; models that answer without streaming have none.
  const models = [...chatModelsOf(config)]
  const pools = toPools(config).map(({ pool }) => pool)
  const targets = [
    ...pools.flatMap((pool) => [pool.id, ...pool.replicas.map(({ id }) => id)]),
    ...pools.map(({ releaseId }) => releaseId),
  ]
  const regions = [...new Set(pools.map(({ region }) => region))]
  const variants = Object.keys(scenario.variants ?? {})
  const gateways = gatewayNamesOf(scenario)
  return [
    ...gatewaysProblems(scenario),
    ...scenario.workload.flatMap((spec, i) => [
      ...named(spec.tenant, tenants, ['workload', i, 'tenant'], 'tenant or group'),
      ...named(spec.model, models, ['workload', i, 'model'], 'chat model'),
      ...(spec.region === undefined ? [] : named(spec.region, regions, ['workload', i, 'region'], 'region')),
      ...streamProblems(spec, ['workload', i]),
    ]),
    ...(scenario.faults ?? []).flatMap((fault, i) =>
      faultProblems(fault, { targets, regions, gateways }, ['faults', i]),
    ),
    ...(scenario.regions?.roundTrips ?? []).flatMap(({ between }, i) =>
      between.flatMap((region, j) => named(region, regions, ['regions', 'roundTrips', i, 'between', j], 'region')),
    ),
    ...Object.keys(scenario.traffic ?? {}).flatMap((id) => named(id, tenants, ['traffic', id], 'tenant')),
    ...Object.entries(scenario.parts ?? {}).flatMap(([name, part]) => backwards(part, ['parts', name])),
    ...(scenario.expect ?? []).flatMap((expectation, i) => expectationProblems(expectation, variants, ['expect', i])),
  ]
}

function streamProblems(spec: StreamSpec, place: Place): Problem[] {
  const { arrivals, phases, leaveAfterMs, fromS, toS } = spec
  const problems = [
    ...lengthProblems(spec.prompt, [...place, 'prompt']),
    ...lengthProblems(spec.output, [...place, 'output']),
    ...(phases ?? []).flatMap((phase, i) => backwards(phase, [...place, 'phases', i])),
    ...(toS === undefined ? [] : backwards({ fromS: fromS ?? 0, toS }, place)),
  ]
  if (arrivals.kind === 'closed' && phases !== undefined && phases.length > 0) {
    const text = 'change a rate, but closed sessions have none. Use fromS and toS, or open arrivals'
    problems.push({ path: [...place, 'phases'], text })
  }
  if (leaveAfterMs !== undefined && leaveAfterMs.max < leaveAfterMs.min) {
    problems.push({ path: [...place, 'leaveAfterMs', 'max'], text: `is below min, which is ${leaveAfterMs.min}` })
  }
  return problems
}

const RATIO_KINDS: readonly string[] = ['replica-errors', 'replica-refusals', 'replica-wrong']

const RETRIEVAL_FAULTS: readonly Fault['kind'][] = ['retrieval-slow', 'retrieval-dead', 'store-loss']

interface Known {
  readonly targets: readonly string[]
  readonly regions: readonly string[]
  readonly gateways: readonly string[]
}

function gatewaysProblems({ gateways, regions, workload }: Scenario): Problem[] {
  const problems: Problem[] = []
  if (gateways !== undefined && regions !== undefined)
    problems.push({ path: ['regions'], text: 'cannot be simulated together with `gateways`. Remove one of them' })
  if (gateways?.shares !== undefined && gateways.shares.length !== gateways.count)
    problems.push({
      path: ['gateways', 'shares'],
      text: `has ${gateways.shares.length} parts for ${gateways.count} gateways`,
    })
  for (const [i, spec] of workload.entries()) {
    const wrong = spec.gateways?.find((number) => number > (gateways?.count ?? 0))
    if (wrong !== undefined)
      problems.push({
        path: ['workload', i, 'gateways'],
        text: `names gateway ${wrong}, and there are ${gateways?.count ?? 0}`,
      })
  }
  return problems
}

function targetProblems({ kind, target }: Fault, { targets, regions, gateways }: Known, at: Place): Problem[] {
  if (kind.startsWith('lease-store'))
    return named(target, gateways.length === 0 ? [] : ['lease-store'], at, 'lease store')
  if (kind.startsWith('gateway-')) return named(target, gateways.length === 0 ? [] : [...gateways, '*'], at, 'gateway')
  if (RETRIEVAL_FAULTS.includes(kind)) return named(target, RETRIEVAL_PARTS, at, 'part of retrieval')
  if (kind === 'region-loss') return named(target, regions, at, 'region')
  return named(target, targets, at, 'replica, pool or release')
}

function faultProblems(fault: Fault, known: Known, place: Place): Problem[] {
  const problems = targetProblems(fault, known, [...place, 'target'])
  if (fault.factor !== undefined && fault.kind !== 'replica-slow' && fault.kind !== 'retrieval-slow') {
    problems.push({ path: [...place, 'factor'], text: `has no effect on ${fault.kind}. Remove it` })
  }
  if ((fault.stepS !== undefined) !== (fault.kind === 'lease-store-clock')) {
    const text =
      fault.stepS === undefined ? 'is missing for lease-store-clock' : `has no effect on ${fault.kind}. Remove it`
    problems.push({ path: [...place, 'stepS'], text })
  }
  if (fault.ratio !== undefined && !RATIO_KINDS.includes(fault.kind)) {
    problems.push({ path: [...place, 'ratio'], text: `has no effect on ${fault.kind}. Remove it` })
  }
  return problems
}

function expectationProblems(expectation: Expectation, variants: readonly string[], place: Place): Problem[] {
  const { atLeast, atMost, atLeastTimes, atMostTimes, of } = expectation
  const problems: Problem[] = []
  if (atLeast === undefined && atMost === undefined && atLeastTimes === undefined && atMostTimes === undefined) {
    problems.push({
      path: place,
      text: 'has no bound, so it cannot fail. Give atLeast, atMost, or one of their …Times',
    })
  }
  if (of !== undefined && of !== '*') problems.push(...named(of, variants, [...place, 'of'], 'variant'))
  for (const [name, times] of Object.entries({ atLeastTimes, atMostTimes })) {
    if (times !== undefined) problems.push(...named(times.variant, variants, [...place, name, 'variant'], 'variant'))
  }
  return problems
}

function backwards({ fromS, toS }: { readonly fromS: number; readonly toS: number }, place: Place): Problem[] {
  if (toS > fromS) return []
  return [{ path: [...place, 'toS'], text: `is ${toS}, and it begins at ${fromS}. It must end after it begins` }]
}

function named(name: string, known: readonly string[], path: Place, what: string): Problem[] {
  if (known.includes(name)) return []
  const guess = nearest(name, [...known])
  const list = known.length === 0 ? 'There are none' : `Known: ${known.slice(0, 10).join(', ')}`
  return [
    {
      path,
      text: `is "${name}", but no ${what} is called so. ${guess === undefined ? list : `Did you mean "${guess}"?`}`,
    },
  ]
}

function lengthProblems(lengths: Lengths, path: Place): Problem[] {
  if (lengths.kind === 'uniform' && lengths.max < lengths.min) {
    return [{ path: [...path, 'max'], text: `is below min, which is ${lengths.min}` }]
  }
  if (lengths.kind !== 'quantiles') return []
  const { points } = lengths
  const wrong = points.findIndex(
    ([quantile = 0, tokens = 0], i) =>
      quantile > 1 || (i > 0 && (quantile <= (points[i - 1]?.[0] ?? 0) || tokens < (points[i - 1]?.[1] ?? 0))),
  )
  const text = 'does not ascend. Give pairs of quantile (0 to 1) and tokens, sorted'
  return wrong < 0 ? [] : [{ path: [...path, 'points', wrong], text }]
}
