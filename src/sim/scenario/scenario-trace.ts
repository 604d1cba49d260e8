import { secondsToUs } from '../../base/clock.ts'
import { surveyTrace, type Trace } from '../traces/fs-trace.ts'

/**
 * A scenario that plays a trace: the trace's tenants become tenants with the settings of the scenario's first one. The
 * trace is read once beforehand, as far as the scenario goes, so that a broken line is reported before the run.
 */
export function withTraceTenants(tree: Readonly<Record<string, unknown>>, trace: Trace): Record<string, unknown> {
  const durationS = typeof tree['durationS'] === 'number' ? tree['durationS'] : Number.POSITIVE_INFINITY
  const { tenants: names } = surveyTrace(trace, secondsToUs(durationS))
  if (names.length === 0) return tree
  const platform = tree['platform'] as { tenants?: Array<Record<string, unknown>> }
  const { id: _, keys: __, ...like } = platform.tenants?.[0] ?? {}
  const known = platform.tenants ?? []
  const tenants = names.filter((id) => known.every((tenant) => tenant['id'] !== id)).map((id) => ({ ...like, id }))
  return { ...tree, platform: { ...platform, tenants: [...known, ...tenants] } }
}
