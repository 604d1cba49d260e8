import { loadProfile } from '../../src/assembly/fs-profiles.ts'
import { secondsToUs } from '../../src/base/clock.ts'
import { Rng } from '../../src/base/rng.ts'
import { Engine } from '../../src/engine/engine.ts'
import type { FinishedEvent } from '../../src/engine/engine-event.ts'
import { limitsOf, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import { drawExponential } from '../../src/sim/clients/draw.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'

/** What does it cost that tenants share no cached prompt (law L13), and what would sharing tell a stranger? */
const PROFILE = 'h100-llama-8b'
const TENANTS = [1, 10, 100, 1_000]
const SYSTEM_TOKENS = 3_008
const OWN_TOKENS = 150
const OUTPUT_TOKENS = 130
const RATE_PER_S = 12
const REQUESTS = 2_400

interface Measured {
  readonly hitRatio: number
  readonly gpuMs: number
  readonly ttftP50: number
  readonly ttftP95: number
}

interface Played {
  readonly ends: readonly FinishedEvent[]
  readonly hitRatio: number
}

/** All tenants begin with the same public system prompt; `isSalted` keeps what each has read to itself. */
function play(tenantCount: number, isSalted: boolean, seed: number, ratePerS: number): Played {
  const profile = loadProfile(PROFILE)
  const limits = limitsOf(profile)
  const engine = new Engine({ coefficients: servingCoefficients(profile), limits })
  const prefixHashes = Array.from({ length: SYSTEM_TOKENS / limits.blockTokens }, (_, index) => index + 1)
  const [arrivals, tenants] = [Rng.stream(seed, 'arrivals'), Rng.stream(seed, 'tenants')]
  const ends: FinishedEvent[] = []
  const advanceTo = (until: number): void => {
    for (let at = engine.nextEventAt(); at !== undefined && at <= until; at = engine.nextEventAt()) {
      for (const event of engine.advance(at)) if (event.kind === 'finished') ends.push(event)
    }
  }
  let atS = 0
  for (let i = 0; i < REQUESTS; i++) {
    const salt = isSalted ? `tenant-${tenants.below(tenantCount)}` : ''
    const at = secondsToUs(atS)
    advanceTo(at - 1)
    const promptTokens = SYSTEM_TOKENS + OWN_TOKENS
    engine.submit(at, { id: `${i}`, promptTokens, outputTokens: OUTPUT_TOKENS, salt, prefixHashes })
    atS += drawExponential(arrivals) / ratePerS
  }
  advanceTo(Number.MAX_SAFE_INTEGER)
  const { prefixHits, prefixQueries } = engine.view(ends.at(-1)?.at ?? 0)
  return { ends, hitRatio: prefixHits / prefixQueries }
}

/** Latency and hits at a rate that every row can serve; GPU time of a request in a full engine, where time is money. */
function measure(tenantCount: number, isSalted: boolean, seed: number): Measured {
  const { ends, hitRatio } = play(tenantCount, isSalted, seed, RATE_PER_S)
  const ttfts = ends.map(({ arrivedAt, firstTokenAt }) => (firstTokenAt - arrivedAt) / 1_000).sort((a, b) => a - b)
  const quantile = (ratio: number): number => ttfts[Math.floor(ratio * (ttfts.length - 1))] ?? 0
  const full = play(tenantCount, isSalted, seed, Number.POSITIVE_INFINITY)
  const gpuMs = (full.ends.at(-1)?.at ?? 0) / 1_000 / REQUESTS
  return { hitRatio, gpuMs, ttftP50: quantile(0.5), ttftP95: quantile(0.95) }
}

/** What a stranger learns where prompts are shared: the time to the first token of a prompt that somebody else sent. */
function probe(isRead: boolean): number {
  const profile = loadProfile(PROFILE)
  const limits = limitsOf(profile)
  const engine = new Engine({ coefficients: servingCoefficients(profile), limits })
  const hashesFrom = (first: number) =>
    Array.from({ length: SYSTEM_TOKENS / limits.blockTokens }, (_, index) => first + index)
  const spec = { promptTokens: SYSTEM_TOKENS + OWN_TOKENS, outputTokens: 1, salt: '' }
  engine.submit(0, { ...spec, id: 'victim', prefixHashes: hashesFrom(1) })
  engine.advance(secondsToUs(10))
  engine.submit(secondsToUs(20), { ...spec, id: 'stranger', prefixHashes: hashesFrom(isRead ? 1 : 10_000) })
  for (const event of engine.advance(secondsToUs(30)))
    if (event.kind === 'finished') return (event.at - secondsToUs(20)) / 1_000
  throw new Error('the probe was not answered')
}

function run({ seeds, progress }: ExperimentOptions): Findings {
  const rows: Cell[][] = []
  const { usdPerHour } = loadProfile(PROFILE)
  for (const tenantCount of TENANTS) {
    const of = (isSalted: boolean): Measured[] => seeds.map((seed) => measure(tenantCount, isSalted, seed))
    progress(`${tenantCount} tenants`)
    const [salted, shared] = [of(true), of(false)]
    const over = (all: readonly Measured[], key: keyof Measured): number => mean(all.map((one) => one[key]))
    const usdPerMillion = (gpuMs: number): number => (1e6 * gpuMs * usdPerHour) / 3.6e6
    const extraMs = over(salted, 'gpuMs') - over(shared, 'gpuMs')
    rows.push([
      tenantCount,
      100 * over(salted, 'hitRatio'),
      100 * over(shared, 'hitRatio'),
      over(salted, 'gpuMs'),
      over(shared, 'gpuMs'),
      usdPerMillion(over(salted, 'gpuMs')),
      usdPerMillion(extraMs),
      over(salted, 'ttftP50'),
      over(shared, 'ttftP50'),
      over(salted, 'ttftP95'),
      over(shared, 'ttftP95'),
    ])
  }
  const columns = [
    'tenants',
    'hits % (salted)',
    'hits % (shared)',
    'GPU ms a request',
    'if shared',
    '$ a million',
    'of it for the salt',
    'TTFT p50 ms',
    'if shared',
    'TTFT p95 ms',
    'if shared',
  ]
  const [read, unread] = [probe(true), probe(false)]
  const cell = (row: number, column: number): number => Number(rows[row]![column])
  return {
    tables: [
      { title: `One system prompt of ${SYSTEM_TOKENS} tokens for all, ${RATE_PER_S} requests a second`, columns, rows },
    ],
    verdict: [
      `The salt costs nothing for one tenant, and with ten ${(100 * (cell(1, 3) / cell(1, 4) - 1)).toFixed(1)} % of the GPU; with a hundred ${(100 * (cell(2, 3) / cell(2, 4) - 1)).toFixed(0)} %, with a thousand ${(100 * (cell(3, 3) / cell(3, 4) - 1)).toFixed(0)} %, where hardly anybody comes twice before the memory is needed: $${cell(3, 6).toFixed(0)} of $${cell(3, 5).toFixed(0)} a million requests.`,
      `What it buys: without it a stranger who sends a guessed prompt gets the first token after ${read.toFixed(0)} ms if somebody has sent it before, and after ${unread.toFixed(0)} ms if nobody has. That tells a system prompt, a document or a conversation of another tenant block by block, which law L13 forbids.`,
      'Where a prompt is public, the tenants can be made one: keys of one tenant share its cache. A salt for the public part alone would need the client to say where it ends, and an engine that takes two salts in one chain; vLLM takes one `cache_salt` a request.',
    ],
  }
}

await runExperiment({
  name: 'shared-prompts',
  title: 'Shared system prompts: what the salt costs, and what it buys',
  about: `One engine (${PROFILE}) with nothing before it; every request begins with the same public system prompt, then ${OWN_TOKENS} tokens of its own, and is answered with ${OUTPUT_TOKENS}. *Salted*: each tenant finds only what it has sent itself, as law L13 wants it and as Spillway sends it (\`cache_salt\`). *Shared*: one cache for all. GPU time and money: of a request in an engine with work always waiting, at the profile's price an hour; hits and first tokens: at 12 requests a second.`,
  seeds: 2,
  run,
})
