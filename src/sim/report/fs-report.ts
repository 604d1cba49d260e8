import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toTenants } from '../../config/to-domain.ts'
import type { CheckedExpectation } from '../scenario/expectations.ts'
import type { Scenario } from '../scenario/scenario.ts'
import { configOf } from '../scenario/scenario-config.ts'
import { renderPage } from './page/render-page.ts'
import type { Report } from './report.ts'
import { seriesOf } from './report-series.ts'

/** Writes a run to files: the page for people, and the JSON behind it. */
export interface ReportParts {
  readonly scenario: Scenario
  readonly report: Report
  readonly variants: Readonly<Record<string, Report>>
  readonly expectations: readonly CheckedExpectation[]
  readonly isLive: boolean
}

/** Width of the collector's windows when the scenario sets none. */
const WINDOW_S = 5

/** Returns the path of the page. */
export function writeReport(folder: string, parts: ReportParts): string {
  const { scenario, report, variants, expectations, isLive } = parts
  const { config } = configOf(scenario, report.seed)
  const series = seriesOf(report, {
    about: scenario.about,
    windowS: scenario.windowS ?? WINDOW_S,
    tenants: new Map(toTenants(config).map((tenant) => [tenant.id, tenant])),
    expectations,
    variants,
    isLive,
  })
  mkdirSync(folder, { recursive: true })
  const page = join(folder, 'report.html')
  writeFileSync(page, renderPage(series))
  writeFileSync(join(folder, 'report.json'), `${JSON.stringify({ ...report, variants, expectations })}\n`)
  return page
}
