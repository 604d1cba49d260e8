import type { Settled } from '../../src/domain/entry.ts'
import { checkScenario } from '../../src/sim/scenario/fs-scenario.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { simulate } from '../../src/sim/simulate.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'

/**
 * What does a check cost at the first token? Every request is judged, and each check takes the same time. Three worlds
 * with steady waits: nobody waits; everybody waits for a turn; a long prompt is read on a pool inside.
 */
interface World {
  readonly name: string
  readonly sessions: number
  readonly promptTokens: number
  readonly isInside: boolean
}

const WORLDS: readonly World[] = [
  { name: 'gate, no wait', sessions: 1, promptTokens: 400, isInside: false },
  { name: 'gate, behind a queue', sessions: 4, promptTokens: 400, isInside: false },
  { name: 'overlap, a long prompt', sessions: 1, promptTokens: 6_000, isInside: true },
]

const CHECKS_MS = [0, 10, 25, 50, 75, 100, 125, 150, 200, 300, 400]

/** Requests at once: with four sessions two run and two wait. */
const CONCURRENCY = 2
/** An answer of this length takes about 170 ms. */
const OUTPUT_TOKENS = 20

function scenarioOf({ sessions, promptTokens, isInside }: World, checkMs: number): Scenario {
  const limit = { kind: 'fixed', concurrencyMax: CONCURRENCY }
  const backend = { kind: 'simulated', profile: 'h100-llama-8b' }
  const tree = {
    name: 'guard-wait',
    about: 'One check time, one world.',
    durationS: 60,
    warmupS: 5,
    platform: {
      models: [{ name: 'm', contextTokensMax: 32_768 }],
      pools: [{ model: 'm', backend, limit, ...(isInside && { inside: true }) }],
      screening: { injection: 'block', join: isInside ? 'overlap' : 'gate' },
      tenants: [{ id: 'a', slo: 'patient' }],
    },
    screens: checkMs === 0 ? {} : { check: { p50Ms: checkMs, p95Ms: checkMs } },
    workload: [
      {
        tenant: 'a',
        model: 'm',
        arrivals: { kind: 'closed', sessions, thinkS: 0 },
        prompt: { kind: 'fixed', tokens: promptTokens },
        output: { kind: 'fixed', tokens: OUTPUT_TOKENS },
      },
    ],
  }
  return checkScenario({ path: 'guard-wait', tree, lineOf: () => undefined }, tree)
}

interface Figures {
  /** Milliseconds, medians. */
  readonly waitMs: number
  readonly ttftMs: number
}

async function figuresOf(world: World, checkMs: number, seed: number): Promise<Figures> {
  const settled: Settled[] = []
  const { laws } = await simulate(scenarioOf(world, checkMs), {
    seed,
    onEntry: (entry) => {
      if (entry.kind === 'settled' && entry.outcome === 'completed') settled.push(entry)
    },
  })
  if (laws.length > 0) throw new Error(`a law is broken: ${laws[0]?.what}`)
  const warm = settled.slice(Math.floor(settled.length / 10))
  return {
    waitMs: medianOf(warm.map(({ grantedAt = 0, arrivedAt }) => (grantedAt - arrivedAt) / 1_000)),
    ttftMs: medianOf(warm.map(({ firstTokenAt = 0, arrivedAt }) => (firstTokenAt - arrivedAt) / 1_000)),
  }
}

const medianOf = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const seed = seeds[0] ?? 1
  const columns = WORLDS.map(() => [] as Figures[])
  for (const [i, world] of WORLDS.entries()) {
    for (const checkMs of CHECKS_MS) {
      progress(`${world.name}, ${checkMs} ms`)
      columns[i]?.push(await figuresOf(world, checkMs, seed))
    }
  }
  const free = columns.map(([first]) => first as Figures)
  // With overlap the check runs beside the prefill too: all of the first token's time is there anyway.
  const hidden = WORLDS.map(({ isInside }, i) => Math.round(isInside ? free[i]!.ttftMs : free[i]!.waitMs))
  const addedOf = (i: number, row: number): number => columns[i]![row]!.ttftMs - free[i]!.ttftMs
  const behind = CHECKS_MS.map((checkMs, row) => ({ checkMs, row })).filter(({ checkMs }) => checkMs > 0)
  const worst = WORLDS.map((_, i) =>
    Math.max(0, ...behind.filter(({ checkMs }) => checkMs <= hidden[i]!).map(({ row }) => addedOf(i, row))),
  )
  return {
    tables: [
      {
        title: 'Added first token in ms (median), by what a check takes',
        columns: ['check', ...WORLDS.map(({ name }, i) => `${name} (${hidden[i]} ms)`), 'max(0, check − wait), queue'],
        rows: CHECKS_MS.map((checkMs, row) => [
          `${checkMs} ms`,
          ...WORLDS.map((_, i) => addedOf(i, row).toFixed(1)),
          Math.max(0, checkMs - free[1]!.waitMs).toFixed(1),
        ]),
      },
    ],
    verdict: WORLDS.flatMap(({ name }, i) =>
      hidden[i]! < CHECKS_MS[1]!
        ? []
        : [`${name}: a check of up to ${hidden[i]} ms adds ${worst[i]!.toFixed(1)} ms at most.`],
    ),
  }
}

await runExperiment({
  name: 'guard-wait',
  title: 'Added first token against check time',
  about:
    'Every request is judged, and each check takes as long as the row says. In brackets what passes before the first token anyway: the wait for a turn, or with `overlap` the wait and the prefill. A check adds nothing until it is longer than that.',
  seeds: 1,
  run,
})
