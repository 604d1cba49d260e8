import { styleText } from 'node:util'
import type { PlannedFleet } from '../sim/plan/fs-plan.ts'
import type { PlanFacts } from '../sim/plan/plan-table.ts'
import { type Command, type FlagValues, JSON_FLAG, numberFlag, textFlag, UsageError, wholeJson } from './command.ts'
import { ProgressLine } from './live-progress-line.ts'

export const planCommand: Command = {
  name: 'plan',
  summary: 'find the smallest number of replicas that keeps a latency target for a recorded workload',
  about:
    'Plays FILE on more and fewer simulated GPUs until the smallest number is found that keeps the target, over the whole\n' +
    'run and in its worst minute, with every seed. FILE is a recording of "spillway record" or a trace; the first seed\n' +
    'plays it as it is, the others deal the lengths of each minute out anew. The exit code is 1 when no number does.',
  flags: {
    trace: { type: 'string', value: 'FILE', meaning: 'a recording or a trace (required)' },
    profile: {
      type: 'string',
      value: 'PROFILE',
      meaning: 'GPU and model: a name of the catalogue, or a FILE.json (required)',
    },
    'ttft-p95': { type: 'string', value: 'MS', meaning: 'first token p95, in milliseconds (default 500)' },
    'itl-p95': { type: 'string', value: 'MS', meaning: 'time between tokens p95, in milliseconds (default 50)' },
    'refused-max': { type: 'string', value: 'PERCENT', meaning: 'requests that may be refused (default 1)' },
    model: { type: 'string', value: 'NAME', meaning: 'of a recording with several models, this one' },
    seeds: { type: 'string', value: 'N', meaning: 'days like the recorded one that must keep the target (default 3)' },
    load: { type: 'string', value: 'FACTOR', meaning: 'multiply the requests (default 1)' },
    speed: { type: 'string', value: 'FACTOR', meaning: "the trace's time runs this much faster (default 1)" },
    duration: { type: 'string', value: 'SECONDS', meaning: 'only the first part of the trace (default: all of it)' },
    'replicas-max': { type: 'string', value: 'N', meaning: 'give up above this number (default 64, at most 1000)' },
    page: { type: 'string', value: 'FILE', meaning: 'write one page with plots to this file' },
    json: JSON_FLAG,
  },
  examples: [
    'spillway plan --trace monday.jsonl --profile h100-llama-8b --ttft-p95 500 --itl-p95 50',
    'spillway plan --trace conv.csv --profile a100-llama-8b --load 4 --page plan.html',
  ],
  async run(flags, io) {
    const path = requiredFlag(flags, 'trace', 'Give a recording of "spillway record", or a trace.')
    const profile = requiredFlag(flags, 'profile', 'Give the name of a profile, as h100-llama-8b, or a FILE.json.')
    const facts: PlanFacts = {
      profile,
      seedCount: numberFlag(flags, 'seeds', { min: 1, max: 100, isWhole: true }) ?? 3,
      load: numberFlag(flags, 'load', { above: 0, max: 1_000 }) ?? 1,
      target: {
        ttftMs: numberFlag(flags, 'ttft-p95', { min: 1, max: 3_600_000, isWhole: true }) ?? 500,
        itlMs: numberFlag(flags, 'itl-p95', { min: 1, max: 3_600_000, isWhole: true }) ?? 50,
        refusedRatioMax: (numberFlag(flags, 'refused-max', { min: 0, max: 100 }) ?? 1) / 100,
      },
    }
    // Loaded when the command runs: help and version need none of the platform.
    const { planTrace } = await import('../sim/plan/fs-plan.ts')
    const progress = new ProgressLine(process.stderr)
    const plan = await planTrace({
      path,
      ...facts,
      factor: numberFlag(flags, 'speed', { above: 0 }) ?? 1,
      durationS: numberFlag(flags, 'duration', { above: 0 }) ?? Number.POSITIVE_INFINITY,
      model: textFlag(flags, 'model'),
      replicasMax: numberFlag(flags, 'replicas-max', { min: 1, max: 1_000, isWhole: true }) ?? 64,
      onProgress: ({ replicas, seed, atS, durationS, ratioOfAll }) => {
        const what = `${replicas} replica${replicas === 1 ? '' : 's'}, seed ${seed}`
        const pace = `${progress.speedOf(what, atS)}${progress.timeLeft(ratioOfAll)}`
        progress.show(what, atS / durationS, `${Math.round(atS)} of ${durationS} s${pace}`)
      },
    })
    progress.clear()
    for (const note of plan.notes) io.err(`Note: ${note}`)
    io.out(flags['json'] === true ? asJson(plan, facts) : await asText(plan, facts))
    const page = textFlag(flags, 'page')
    if (page !== undefined) {
      const { writePlanPage } = await import('../sim/plan/fs-plan-page.ts')
      io.err(`The page: ${writePlanPage(page, plan, facts)}`)
    }
    return plan.answer === undefined ? 1 : 0
  },
}

function requiredFlag(flags: FlagValues, name: string, advice: string): string {
  const value = textFlag(flags, name)
  if (value === undefined) throw new UsageError(`--${name} is missing. ${advice}`)
  return value
}

function asJson({ answer, points, because, workload, requestCount, notes }: PlannedFleet, facts: PlanFacts): string {
  const { name, durationS, tenants } = workload
  return wholeJson({
    trace: { file: name, requests: requestCount, durationS, tenants: tenants.length },
    ...facts,
    answer: answer === undefined ? undefined : { replicas: answer.replicas, runs: answer.runs },
    because,
    curve: points,
    notes,
  })
}

async function asText(plan: PlannedFleet, facts: PlanFacts): Promise<string> {
  const { planTable } = await import('../sim/plan/plan-table.ts')
  const color = plan.answer === undefined ? 'red' : 'green'
  const answer = plan.answer === undefined ? 'No answer' : `${plan.answer.replicas} replica`
  return planTable(plan, facts).replace(`\n${answer}`, `\n${styleText(color, answer, { stream: process.stdout })}`)
}
