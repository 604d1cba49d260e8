import type { Entry } from '../../src/domain/entry.ts'
import { checkScenario, loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import { withPaths } from '../../src/sim/scenario/variants.ts'
import { simulate } from '../../src/sim/simulate.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'

/**
 * Is Retry-After true? Clients that come back exactly when they were told, at most twice, under sustained overload:
 *
 *   node bench/experiments/return-slots.ts [--seeds N] [--from SEED] [--loads 1.3,2.2,4] [--only one,ten,many,crowd] [--shares 0,0.3] [--ladder]
 */
const CAPACITY_PER_S = 22

/** One tenant with all of the load, and ten, twenty-five or a hundred that are alike; the hundred only if asked for. */
const WORLDS: Readonly<Record<string, number>> = { one: 1, ten: 10, many: 25, crowd: 100 }
const USUAL = ['one', 'ten', 'many']

interface Seen {
  readonly firstRatio: number
  readonly slotRatio: number
  readonly returnRatio: number
  readonly withoutRatio: number
  readonly goodPerS: number
  readonly lateRatio: number
  readonly waitedS: number
}

async function playOnce(tenants: number, load: number, share: number, seed: number, ladder: boolean): Promise<Seen> {
  const { file } = loadScenario('azure-conv')
  const [stream] = (file.tree as { workload: Array<Record<string, unknown>> }).workload
  const ids = Array.from({ length: tenants }, (_, i) => `t${i}`)
  const scenario = checkScenario(
    file,
    withPaths(file.tree, {
      durationS: 150,
      warmupS: 30,
      'platform.ladder.enabled': ladder,
      'platform.admission.returnShare': share,
      'platform.tenants': ids.map((id) => ({ id, weight: 1, slo: 'chat' })),
      workload: ids.map((tenant) => ({
        ...stream,
        tenant,
        phases: [],
        arrivals: { kind: 'gamma', ratePerS: (load * CAPACITY_PER_S) / tenants, cv: 1.07 },
        retry: { kind: 'honour', triesMax: 3 },
      })),
    }),
  )
  const first = new Tally()
  const again = new Tally()
  const onSlot = new Tally()
  let none = 0
  let refused = 0
  const waits: number[] = []
  const onEntry = (entry: Entry): void => {
    if (entry.kind !== 'admitted' && entry.kind !== 'settled') return
    if (entry.at < 30_000_000) return
    const isAgain = /\.\d+$/.test(entry.ticketId)
    const tally = isAgain ? again : first
    if (entry.kind === 'admitted') {
      tally.good++
      return
    }
    if (entry.outcome !== 'rejected') return
    tally.bad++
    refused++
    if (entry.refusal?.slot === 'none') none++
    if (entry.refusal?.retryAfterUs !== undefined) waits.push(entry.refusal.retryAfterUs / 1e6)
  }
  const report = await simulate(scenario, {
    seed,
    onEntry,
    marksTries: true,
  })
  const { kept, broken } = report.returns
  onSlot.good = kept
  onSlot.bad = broken
  return {
    firstRatio: first.ratio,
    slotRatio: onSlot.ratio,
    returnRatio: again.ratio,
    withoutRatio: refused === 0 ? 0 : none / refused,
    goodPerS: report.goodput.requestsPerS,
    lateRatio: report.lateRatio,
    waitedS: mean(waits),
  }
}

class Tally {
  good = 0
  bad = 0

  get ratio(): number {
    return this.good / Math.max(1, this.good + this.bad)
  }
}

async function run({ seeds, loads, only, given, progress }: ExperimentOptions): Promise<Findings> {
  const shares = String(given['shares'] ?? '0,0.3')
    .split(',')
    .map(Number)
  const names = Object.keys(WORLDS).filter((name) => (only ?? USUAL).includes(name))
  const tables = []
  for (const name of names) {
    const rows: Cell[][] = []
    for (const load of loads) {
      for (const share of shares) {
        const seen: Seen[] = []
        for (const seed of seeds) {
          progress(`${name} ${load} × share ${share} seed ${seed}`)
          seen.push(await playOnce(WORLDS[name]!, load, share, seed, given['ladder'] === true))
        }
        const over = (pick: (one: Seen) => number): number => mean(seen.map(pick))
        rows.push([
          load,
          share,
          100 * over(({ firstRatio }) => firstRatio),
          100 * over(({ returnRatio }) => returnRatio),
          100 * over(({ slotRatio }) => slotRatio),
          100 * Math.min(...seen.map(({ slotRatio }) => slotRatio)),
          100 * over(({ withoutRatio }) => withoutRatio),
          over(({ waitedS }) => waitedS),
          over(({ goodPerS }) => goodPerS),
          100 * over(({ lateRatio }) => lateRatio),
        ])
      }
    }
    tables.push({ title: `${name} tenant${WORLDS[name] === 1 ? '' : 's'}`, columns: COLUMNS, rows })
  }
  return { tables, verdict: [] }
}

const COLUMNS = [
  'load ×',
  'share',
  'first tries in %',
  'returns in %',
  'on a slot in %',
  'worst seed %',
  'refused without slot %',
  'told to wait s',
  'good/s',
  'late %',
]

await runExperiment({
  name: 'return-slots',
  title: 'Coming back when told',
  about:
    'Clients that come back exactly when Retry-After says, at most twice, under sustained overload (conversations on one h100-llama-8b). *on a slot*: of those for whom room was kept and who came in time, how many were admitted.',
  seeds: 2,
  hasLoads: true,
  loads: '1.3,2.2,4',
  options: { shares: { type: 'string' }, ladder: { type: 'boolean' } },
  run,
})
