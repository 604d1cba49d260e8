import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { missing, pathOf } from './support/installed.ts'

/** Alerts and recording rules against days of series, as Prometheus evaluates them. */
const why = missing('promtool')

it.skipIf(why !== undefined)(
  `promtool runs the series of the rules' tests${why === undefined ? '' : `: ${why}`}`,
  { timeout: 120_000 },
  () => {
    const run = spawnSync(pathOf('promtool'), ['test', 'rules', 'deploy/prometheus/spillway.rules.test.yaml'], {
      encoding: 'utf8',
    })
    expect(run.status, run.stdout + run.stderr).toBe(0)
  },
)
