import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { play } from './kit/play.ts'
import type { Cell } from './kit/result.ts'

/** Is placing by predicted first token anywhere worse than the plain rules that need to know nothing? */
const PLAIN = ['fewest-requests', 'round-robin'] as const
/** A pool of unlike replicas, and one of alike ones. */
const WORLDS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  heterogeneous: {},
  alike: { 'platform.pools.0.backend': { kind: 'simulated', profile: 'h100-llama-8b' } },
}
/** Wanted: at most two per cent worse anywhere. */
const WORSE_MAX = 0.02

async function run({ seeds, loads, only, progress }: ExperimentOptions): Promise<Findings> {
  const rows: Cell[][] = []
  const worse: string[] = []
  for (const [world, set] of Object.entries(WORLDS)) {
    if (only !== undefined && !only.includes(world)) continue
    for (const load of loads) {
      const ours: number[] = []
      const plain = new Map<string, number[]>(PLAIN.map((rule) => [rule, []]))
      for (const seed of seeds) {
        progress(`${world} at ${load} ×, seed ${seed}`)
        const p95 = async (more: Readonly<Record<string, unknown>>): Promise<number> => {
          const all = { ...set, load, durationS: 90, variants: {}, expect: [], ...more }
          return (await play({ scenario: 'heterogeneous', set: all, seed })).latency.ttft.p95 ?? 0
        }
        ours.push(await p95({}))
        for (const rule of PLAIN) plain.get(rule)?.push(await p95({ 'platform.routing.rule': rule }))
      }
      for (const [rule, theirs] of plain) {
        const { ratio, half } = paired(ours, theirs)
        rows.push([world, load, rule, mean(ours), mean(theirs), 100 * (ratio - 1), 100 * half])
        if (ratio > 1 + WORSE_MAX)
          worse.push(`${world} at ${load} × against ${rule}: ${(100 * (ratio - 1)).toFixed(1)} %`)
      }
    }
  }
  const verdict = worse.length === 0 ? ['Nowhere more than 2 % worse.'] : worse.map((one) => `Worse: ${one}.`)
  return { tables: [{ title: 'First tokens by rule of placing', columns: COLUMNS, rows }], verdict }
}

/** Mean of the seeds' ratios, and half of its 95 % interval. */
function paired(ours: readonly number[], theirs: readonly number[]): { ratio: number; half: number } {
  const ratios = ours.map((value, i) => value / Math.max(1e-9, theirs[i] ?? 0))
  const ratio = mean(ratios)
  const variance = mean(ratios.map((one) => (one - ratio) ** 2)) * (ratios.length / Math.max(1, ratios.length - 1))
  return { ratio, half: ratios.length < 2 ? 0 : 2.2 * Math.sqrt(variance / ratios.length) }
}

const COLUMNS = ['pool', 'load ×', 'plain rule', 'ours p95 ms', 'plain p95 ms', 'ours worse by %', '±']

await runExperiment({
  name: 'plain-rules',
  title: 'Placing against plain rules',
  about:
    'Eight replicas, unlike (half H100, half A100) and alike, at multiples of 60 requests a second; p95 of the first token, our rule against fewest requests and turns, each seed with the same arrivals. Negative: ours is sooner.',
  seeds: 2,
  hasLoads: true,
  loads: '0.8,1,1.2,1.5',
  run,
})
