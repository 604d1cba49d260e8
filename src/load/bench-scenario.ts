import { ConfigError } from '../config/config-error.ts'
import { checkScenario, loadScenario } from '../sim/scenario/fs-scenario.ts'
import type { Scenario } from '../sim/scenario/scenario.ts'
import { withTraceTenants } from '../sim/scenario/scenario-trace.ts'
import { openTrace } from '../sim/traces/fs-trace.ts'
import { TraceError, type TraceRequest } from '../sim/traces/trace.ts'

/** A scenario for a live run, with the recorded workload to play, if any. */
export function openBenchScenario(
  name: string,
  options: { readonly path: string; readonly factor: number; readonly seed: number } | undefined,
): { readonly scenario: Scenario; readonly trace: Iterable<TraceRequest> | undefined } {
  const { scenario, file } = loadScenario(name)
  if (options === undefined) return { scenario, trace: undefined }
  try {
    const trace = openTrace(options.path, options)
    return { scenario: checkScenario(file, withTraceTenants(file.tree, trace)), trace: trace.requests() }
  } catch (error) {
    throw error instanceof TraceError ? new ConfigError([error.message]) : error
  }
}
