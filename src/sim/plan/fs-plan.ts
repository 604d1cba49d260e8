import { basename } from 'node:path'
import { US_PER_S } from '../../base/clock.ts'
import { ConfigError } from '../../config/config-error.ts'
import { checkScenario } from '../scenario/fs-scenario.ts'
import { simulate } from '../simulate.ts'
import { openTrace, type Trace } from '../traces/fs-trace.ts'
import { TraceError, type TraceRequest } from '../traces/trace.ts'
import { dealLengths } from './deal-lengths.ts'
import { type FleetPlan, planFleet, type RunOutlook } from './plan-fleet.ts'
import { runOf } from './plan-point.ts'
import { type PlanTarget, type PlanWorkload, planTree, workloadOf } from './plan-scenario.ts'

/** A plan for a trace on the disk. */
export interface PlanAsk {
  readonly path: string
  /** Speed of the trace's time. */
  readonly factor: number
  /** Only the trace's first seconds; all of it if infinite. */
  readonly durationS: number
  /** Of a recording with several models, the one to plan for. */
  readonly model: string | undefined
  readonly profile: string
  readonly load: number
  readonly target: PlanTarget
  readonly seedCount: number
  readonly replicasMax: number
  readonly onProgress: (progress: PlanProgress) => void
}

export interface PlanProgress {
  readonly replicas: number
  readonly seed: number
  readonly atS: number
  readonly durationS: number
  /** Share of all runs that is done, about. */
  readonly ratioOfAll: number
}

export interface PlannedFleet extends FleetPlan {
  readonly workload: PlanWorkload
  readonly requestCount: number
  readonly notes: readonly string[]
}

/** Requests that are held in memory: a quarter of a gigabyte. */
const REQUESTS_MAX = 1_000_000

export async function planTrace(ask: PlanAsk): Promise<PlannedFleet> {
  try {
    return await planOn(ask)
  } catch (error) {
    // A broken trace is the user's to correct: one line, no stack.
    throw error instanceof TraceError ? new ConfigError([error.message]) : error
  }
}

async function planOn(ask: PlanAsk): Promise<PlannedFleet> {
  const { path, factor, target, load, profile } = ask
  const days = readDays(ask, openTrace(path, { factor }))
  const workload = workloadOf(basename(path), days.first)
  const run = async (replicas: number, seed: number, outlook: RunOutlook) => {
    const tree = planTree(workload, target, { profile, replicas, load })
    const scenario = checkScenario({ path, tree, lineOf: () => undefined }, tree)
    const { durationS } = workload
    const runsInAll = outlook.endedCount + 1 + outlook.comingCount
    const report = await simulate(scenario, {
      seed,
      trace: days.of(seed),
      onProgress: (atS) => {
        const ratioOfAll = (outlook.endedCount + Math.min(1, atS / durationS)) / runsInAll
        ask.onProgress({ replicas, seed, atS, durationS, ratioOfAll })
      },
    })
    return runOf(report)
  }
  const seeds = Array.from({ length: ask.seedCount }, (_, i) => i + 1)
  const plan = await planFleet({ target, seeds, replicasMax: ask.replicasMax, run })
  return { ...plan, workload, requestCount: days.first.length, notes: days.notes }
}

/** The trace as it is, and other days like it. */
interface Days {
  readonly first: readonly TraceRequest[]
  readonly notes: readonly string[]
  of(seed: number): Iterable<TraceRequest>
}

function readDays(ask: PlanAsk, trace: Trace): Days {
  const first = taken(ask, trace.requests())
  if (first.length === 0) throw new ConfigError([`${ask.path}: no request in it${nameIf(ask.model)}.`])
  const models = new Set(first.flatMap(({ asked }) => asked?.model ?? []))
  if (models.size > 1) {
    const names = [...models].join(', ')
    throw new ConfigError([`${ask.path}: it has requests for several models. Give --model with one of: ${names}.`])
  }
  const { path, factor } = ask
  // ServeGen's clients are rates and quantiles: another seed draws other requests from them.
  const drawn = (seed: number): Iterable<TraceRequest> => taken(ask, openTrace(path, { factor, seed }).requests())
  return {
    first,
    notes: [...trace.notes],
    of: (seed) => (trace.format === 'servegen' && seed !== 1 ? drawn(seed) : dealLengths(first, seed)),
  }
}

const nameIf = (model: string | undefined): string => (model === undefined ? '' : ` for the model ${model}`)

/** A plan has one target for everybody; what each client or its old promise set is not part of it. */
function withoutDeadline(request: TraceRequest): TraceRequest {
  const { asked } = request
  return asked === undefined ? request : { ...request, asked: { ...asked, deadlineUs: Number.POSITIVE_INFINITY } }
}

function taken({ path, durationS, model }: PlanAsk, requests: Iterable<TraceRequest>): TraceRequest[] {
  const kept: TraceRequest[] = []
  for (const request of requests) {
    if (request.atUs >= durationS * US_PER_S) break
    if (model !== undefined && request.asked !== undefined && request.asked.model !== model) continue
    kept.push(withoutDeadline(request))
    if (kept.length > REQUESTS_MAX) {
      const advice = 'Plan for a part of it with --duration.'
      throw new TraceError(`${path}: more than ${REQUESTS_MAX.toLocaleString('en-US')} requests. ${advice}`)
    }
  }
  return kept
}
