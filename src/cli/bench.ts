import type { Benched } from '../load/bench.ts'
import { reportTable } from '../sim/report/report-table.ts'
import {
  type Command,
  type FlagValues,
  JSON_FLAG,
  numberFlag,
  REPORT_FLAG,
  textFlag,
  UsageError,
  wholeJson,
} from './command.ts'
import { SERVER_FLAGS, serverUrlOf } from './http-server-client.ts'
import { ProgressLine } from './live-progress-line.ts'
import { untilSignal } from './until-signal.ts'

export const benchCommand: Command = {
  name: 'bench',
  summary: 'send a scenario to a live server: Spillway, vLLM, llama.cpp, LiteLLM …',
  about:
    'SCENARIO is the name of a shipped scenario or the path of a YAML file, as for "simulate"; the report is the same.\n' +
    'Open loop: arrivals do not wait for answers, and latency counts from the time at which the scenario sends a request.\n' +
    '429 and 503 count as shed. Requests set max_tokens, so that answers have the scenario\u2019s lengths.\n' +
    'Ctrl-C ends the run early and prints the report so far.',
  argument: 'SCENARIO',
  flags: {
    ...SERVER_FLAGS,
    key: {
      type: 'string',
      value: 'KEY',
      meaning: 'tenant=SECRET for one tenant, SECRET alone for all others; may be repeated',
      multiple: true,
    },
    model: {
      type: 'string',
      value: 'NAME',
      meaning: 'ask for this model, whatever the scenario calls it (default: the only model of the server)',
    },
    duration: { type: 'string', value: 'SECONDS', meaning: 'stop sending after this time (default: as the scenario)' },
    requests: { type: 'string', value: 'N', meaning: 'stop sending after this many requests (default 1,000,000)' },
    trace: { type: 'string', value: 'FILE', meaning: 'play a recorded workload instead of the scenario\u2019s own' },
    speed: { type: 'string', value: 'FACTOR', meaning: "the trace's time runs this much faster (default 1)" },
    scale: { type: 'string', value: 'FACTOR', meaning: 'multiply every rate (default 1)' },
    'in-flight': { type: 'string', value: 'N', meaning: 'at most this many open streams (default 10,000)' },
    seed: { type: 'string', value: 'N', meaning: 'same seed, same requests at the same times (default 1)' },
    'ignore-eos': { type: 'boolean', meaning: 'send ignore_eos to vLLM or llama.cpp, for exact answer lengths' },
    check: { type: 'boolean', meaning: 'exit code 1 when an expectation of the scenario does not hold' },
    report: REPORT_FLAG,
    json: JSON_FLAG,
  },
  examples: [
    'spillway bench baseline --key alpha=sk-… --key sk-… --model spill-large --duration 30',
    'spillway bench azure-conv --url http://gpu-1:8000 --model llama-8b --ignore-eos --scale 2',
  ],
  async run(flags, io) {
    // Loaded when the command runs: help and version need none of the platform.
    const { bench: runBench } = await import('../load/bench.ts')
    const name = textFlag(flags, 'argument')
    if (name === undefined) throw new UsageError(`which scenario? Try: ${benchCommand.examples[0]}`)
    const { scenario, trace } = await withTrace(name, flags)
    const url = serverUrlOf(flags)
    const durationS = numberFlag(flags, 'duration', { above: 0, max: 86_400 }) ?? scenario.durationS
    const progress = new ProgressLine(process.stderr)
    const { stop, forget } = untilSignal()
    try {
      const benched = await runBench({
        scenario,
        ...(trace !== undefined && { trace }),
        url,
        keys: keysOf(flags),
        model: textFlag(flags, 'model'),
        durationS,
        scale: numberFlag(flags, 'scale', { above: 0, max: 100_000 }) ?? 1,
        seed: numberFlag(flags, 'seed', { above: -1, max: Number.MAX_SAFE_INTEGER }) ?? 1,
        requestsMax: numberFlag(flags, 'requests', { above: 0 }) ?? 1_000_000,
        inFlightMax: numberFlag(flags, 'in-flight', { above: 0, max: 50_000 }) ?? 10_000,
        ignoresEos: flags['ignore-eos'] === true,
        onStart: (tenants) =>
          io.err(
            `Sending "${scenario.name}" to ${url} for ${durationS} s, as ${tenants} tenant${tenants === 1 ? '' : 's'}. Ctrl-C ends it.`,
          ),
        onTick: ({ atS, sent, inFlight }, tally) => {
          const { completed, shed, failed } = tally.total
          const detail = `${Math.round(atS)} of ${durationS} s: ${sent} sent, ${inFlight} open, ${completed} done, ${shed} shed, ${failed} failed`
          progress.show(scenario.name, atS / durationS, detail)
        },
        stop,
      })
      progress.clear()
      io.out(flags['json'] === true ? asJson(benched) : asText(benched))
      const folder = textFlag(flags, 'report')
      if (folder !== undefined) {
        const { writeReport } = await import('../sim/report/fs-report.ts')
        io.err(`The page: ${writeReport(folder, { ...benched, scenario, variants: {}, isLive: true })}`)
      }
      return flags['check'] === true && benched.expectations.some(({ holds }) => !holds) ? 1 : 0
    } finally {
      forget()
    }
  },
}

async function withTrace(name: string, flags: FlagValues) {
  const { openBenchScenario } = await import('../load/bench-scenario.ts')
  const path = textFlag(flags, 'trace')
  const factor = numberFlag(flags, 'speed', { above: 0 }) ?? 1
  const seed = numberFlag(flags, 'seed', { min: 0, isWhole: true }) ?? 1
  return openBenchScenario(name, path === undefined ? undefined : { path, factor, seed })
}

function keysOf(flags: FlagValues): readonly string[] {
  const given = flags['key']
  return Array.isArray(given) ? given : typeof given === 'string' ? [given] : []
}

function asJson({ report, expectations, lagMs }: Benched): string {
  return wholeJson({ ...report, expectations, sender: { lagMs } })
}

/** Share of requests sent over 20 ms late, above which the latencies are partly those of this machine. */
const LATE_RATIO_MAX = 0.01

function asText({ report, expectations, lagMs }: Benched): string {
  const lines = [reportTable(report)]
  if (expectations.length > 0) lines.push('', 'Expectations')
  for (const { what, holds, because } of expectations) lines.push(`  ${holds ? 'holds' : 'FAILS'}  ${what}: ${because}`)
  lines.push('', `sender    late by ${lagMs.mean.toFixed(1)} ms on average, ${lagMs.max.toFixed(0)} ms at most`)
  if (lagMs.over20MsRatio > LATE_RATIO_MAX) {
    const share = (100 * lagMs.over20MsRatio).toFixed(1)
    lines.push(
      `          ${share} % of the requests were sent over 20 ms late: this machine is too busy, which raises the latencies.`,
    )
  }
  return lines.join('\n')
}
