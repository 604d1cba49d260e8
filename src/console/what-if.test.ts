import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import { LiveWhatIf, type WhatIfStep } from './live-what-if.ts'
import { describeScenario, whatIfReport, whatIfSettings } from './what-if.ts'

const SCENARIO = {
  about: 'a day ',
  durationS: 60,
  platform: {
    pools: [
      { model: 'a', replicas: ['http://x'] },
      { model: 'b', replicas: 4 },
    ],
  },
  workload: [
    { tenant: 'acme', arrivals: { kind: 'poisson', ratePerS: 10 } },
    { tenant: 'globex', arrivals: { kind: 'closed', sessions: 3 } },
    { tenant: 'acme', arrivals: { kind: 'gamma', ratePerS: 2 } },
  ],
}

describe('what if', () => {
  it('says what of a scenario can be changed', () => {
    expect(describeScenario('day', SCENARIO)).toEqual({
      name: 'day',
      about: 'a day',
      durationS: 60,
      pools: [{ model: 'b', replicas: 4 }],
      tenants: ['acme', 'globex'],
    })
  })

  it('changes replicas of the named pool, everybody’s rate, and all streams of a tenant', () => {
    const ask = { scenario: 'day', model: 'b', replicas: 2, load: 1.5, tenant: 'acme', tenantRate: 2 }
    expect(whatIfSettings(SCENARIO, ask)).toEqual({
      set: [
        'platform.pools.1.replicas=2',
        'load=1.5',
        'workload.0.arrivals.ratePerS=20',
        'workload.2.arrivals.ratePerS=4',
      ],
    })
    expect(whatIfSettings(SCENARIO, { scenario: 'day', tenant: 'globex', tenantRate: 0.1 })).toEqual({
      set: ['workload.1.arrivals.sessions=1'],
    })
  })

  it('says what cannot be asked', () => {
    for (const ask of [{}, { model: 'a', replicas: 2 }, { tenant: 'nobody', tenantRate: 2 }, { tenantRate: 2 }])
      expect(whatIfSettings(SCENARIO, { scenario: 'day', ...ask }), JSON.stringify(ask)).toHaveProperty('problem')
  })

  it('compares at most twenty tenants, the busiest', () => {
    const tenants = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`t${i}`, { requests: { arrived: i } }]))
    const report = whatIfReport({ requests: { arrived: 9, shed: 2 }, latency: { ttft: { p95: 70 } }, tenants })
    expect(report).toMatchObject({ arrived: 9, refused: 2, ttftP95Ms: 70, completed: 0 })
    expect(Object.keys(report.tenants)).toHaveLength(20)
    expect(report.tenants).toHaveProperty('t29')
    expect(report.tenants).not.toHaveProperty('t9')
  })
})

/** A program in the simulator's place: the given script of Node, which gets the simulator's arguments. */
const program = (script: string) => [process.execPath, '-e', script, '--'] as const
const ASK = { scenario: 'burst', replicas: 2 }

describe('LiveWhatIf', () => {
  it('runs the scenario as it is and changed, tells how far it is, and gives the child no environment', async () => {
    const script = `
      const args = process.argv.slice(1)
      console.error('progress 50')
      const isChanged = args.includes('platform.pools.0.replicas=2')
      const env = Object.keys(process.env).length
      const nice = require('node:os').getPriority()
      console.log(JSON.stringify({ requests: { arrived: isChanged ? 2 : 1, completed: env, failed: nice } }))`
    const whatIf = new LiveWhatIf({ clock: new VirtualClock(), program: program(script) })
    const steps: WhatIfStep[] = []
    const end = await whatIf.begin(ASK, (step) => void steps.push(step))!.end
    expect(end).toMatchObject({
      kind: 'done',
      asIs: { arrived: 1, completed: 0, failed: 19 },
      changed: { arrived: 2 },
      command: 'npx spillway simulate burst --set platform.pools.0.replicas=2',
    })
    expect(steps).toEqual([
      { run: 1, ratio: 0.5 },
      { run: 2, ratio: 0.5 },
    ])
    expect(whatIf.isRunning).toBe(false)
  })

  const FOREVER = `console.error('progress 1'); setInterval(() => {}, 1e6)`
  /** Calls back as soon as the child runs. */
  async function whileItRuns(act: (whatIf: LiveWhatIf, clock: VirtualClock, stop: () => void) => void) {
    const clock = new VirtualClock()
    const whatIf = new LiveWhatIf({ clock, program: program(FOREVER), runUsMax: 1_000_000 })
    const begun = whatIf.begin(ASK, () => act(whatIf, clock, begun.stop))!
    const end = await begun.end
    expect(whatIf.isRunning).toBe(false)
    return end
  }

  it('runs one at a time, and ends with who asked', async () => {
    const end = await whileItRuns((whatIf, _, stop) => {
      expect(whatIf.begin(ASK, () => {})).toBeUndefined()
      stop()
    })
    expect(end).toEqual({ kind: 'failed', problem: 'It was stopped.' })
  })

  it('does not end what began after its own end', async () => {
    const whatIf = new LiveWhatIf({ clock: new VirtualClock(), program: program('console.log("{}")') })
    const first = whatIf.begin(ASK, () => {})!
    await first.end
    const second = whatIf.begin(ASK, () => {})!
    first.stop()
    expect(await second.end).toMatchObject({ kind: 'done' })
  })

  it('ends with the server, and begins nothing then', async () => {
    let closed: LiveWhatIf | undefined
    const end = await whileItRuns((whatIf) => {
      closed = whatIf
      whatIf.close()
    })
    expect(end).toEqual({ kind: 'failed', problem: 'It was stopped.' })
    expect(closed!.begin(ASK, () => {})).toBeUndefined()
  })

  it('ends when its time is over', async () => {
    const end = await whileItRuns((_, clock) => void clock.run(1_000_001))
    expect(end).toMatchObject({ kind: 'failed', problem: expect.stringContaining('more than 1 s') })
  })

  it.each([
    ['too much output', 'console.log("x".repeat(3_000)); setInterval(() => {}, 1e6)', 'said too much'],
    ['no report', 'console.error("the scenario is broken"); process.exit(2)', 'the scenario is broken'],
  ])('ends at %s', async (_what, script, problem) => {
    const whatIf = new LiveWhatIf({ clock: new VirtualClock(), program: program(script), outputCharsMax: 1_000 })
    const end = await whatIf.begin(ASK, () => {})!.end
    expect(end).toMatchObject({ kind: 'failed', problem: expect.stringContaining(problem) })
  })

  it('says so when the simulator cannot start, and when there is no such scenario', async () => {
    const whatIf = new LiveWhatIf({ clock: new VirtualClock(), program: ['/nowhere/node'] })
    expect(await whatIf.begin(ASK, () => {})!.end).toMatchObject({
      problem: expect.stringContaining('could not start'),
    })
    for (const scenario of ['none', '../package.json', '']) {
      expect(whatIf.scenario(scenario)).toBeUndefined()
      expect(await whatIf.begin({ ...ASK, scenario }, () => {})!.end).toMatchObject({ kind: 'failed' })
    }
    expect(whatIf.names()).toContain('burst')
    expect(whatIf.scenario('burst')).toMatchObject({ durationS: 150, tenants: ['news', 'shop', 'bank'] })
  })
})
