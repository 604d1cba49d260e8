import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { demoLine, demoScreen, demoSummary } from '../../src/cli/demo-view.ts'
import { buildConfig } from '../../src/config/load.ts'
import { type DemoEnd, type DemoPhase, type DemoView, demo } from '../../src/load/demo.ts'
import { type Served, serve } from '../../src/main/serve.ts'

/**
 * The demo from end to end, squeezed into a few seconds: what is said must be what was measured. Everybody's clock runs
 * at a quarter of the world's, so that every phase is long enough to be seen on a busy machine too.
 */
const PACE = 0.25
const SECONDS = 2
let platform: Served
beforeAll(async () => {
  const config = buildConfig(undefined, {}, { 'server.port': '0', 'logging.level': 'silent' })
  platform = await serve(config, { out: () => {}, err: () => {} }, new LiveClock(PACE))
})
afterAll(() => platform.close())

it('shows the three phases, and sums them up', { timeout: 90_000 }, async () => {
  const views: DemoView[] = []
  let phases: readonly DemoPhase[] = []
  const end: DemoEnd = await demo({
    url: undefined,
    likelyUrl: platform.address,
    startOwn: () => Promise.reject(new Error('one runs already')),
    seconds: SECONDS,
    onStart: (start) => {
      phases = start.phases
      expect(start.isOwn).toBe(false)
    },
    onTick: (view) => views.push(view),
    clock: new LiveClock(PACE),
  })
  expect(phases.map(({ name }) => name)).toEqual(['calm', 'spike', 'recovery'])
  expect([...new Set(views.map(({ phase }) => phase.name))]).toEqual(['calm', 'spike', 'recovery'])
  const globex = (phase: string) =>
    end.phases.find((each) => each.phase.name === phase)?.tenants.find(({ id }) => id === 'globex')
  expect(globex('spike')?.arrived).toBeGreaterThan(5 * (globex('calm')?.arrived ?? 0))
  for (const { tenants } of end.phases) {
    for (const { arrived, completed, shed, failed, cancelled } of tenants) {
      expect(completed + shed + failed + cancelled).toBe(arrived)
      expect(failed).toBe(0)
    }
  }
  const last = views.at(-1)!
  expect(stripVTControlCharacters(demoScreen(last, phases))).toMatch(
    /calm {2}→ {2}spike: globex × 20 {2}→ {2}▶ recovery[\s\S]*globex/,
  )
  expect(demoLine(last)).toMatch(/^ +\d+ s {2}recovery {2}acme [\d.]+\/s/)
  expect(stripVTControlCharacters(demoSummary(end))).toMatch(/globex sent twenty times as much[\s\S]*Look deeper/)
})

it('says so when a promise was missed', () => {
  const tenant = (id: string, ttftP95: number) => ({
    id,
    contract: 'degrade',
    sloTtftMs: 1_000,
    arrived: 10,
    completed: 9,
    shed: 1,
    failed: 0,
    cancelled: 0,
    degraded: 0,
    ttftP50: 10,
    ttftP95,
    rung: undefined,
  })
  const end: DemoEnd = {
    url: 'http://x',
    noisy: 'globex',
    lagMs: { mean: 50, max: 400, over20MsRatio: 0.5 },
    phases: [{ phase: { name: 'spike', fromS: 0, toS: 1 }, tenants: [tenant('acme', 1_500), tenant('globex', 900)] }],
  }
  const text = stripVTControlCharacters(demoSummary(end))
  expect(text).toContain('acme did NOT keep its promise: p95 1.5 s of 1 s, 1 refused')
  expect(text).toContain('This machine was busy: 50 % of the requests were sent over 20 ms late')
})
