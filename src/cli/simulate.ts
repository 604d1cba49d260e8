import { styleText } from 'node:util'
import type { Io } from '../base/running.ts'
import type { ConfigFile } from '../config/fs-config-file.ts'
import type { Simulation } from '../sim/compare-variants.ts'
import { reportTable } from '../sim/report/report-table.ts'
import {
  CONFIG_FLAG,
  type Command,
  type FlagValues,
  JSON_FLAG,
  numberFlag,
  REPORT_FLAG,
  textFlag,
  UsageError,
  wholeJson,
} from './command.ts'
import { ProgressLine, timesRealTime, wallMs } from './live-progress-line.ts'

export const simulateCommand: Command = {
  name: 'simulate',
  summary: 'run a scenario in virtual time: the same code as live, an hour in seconds',
  about:
    'SCENARIO is the name of a shipped scenario or the path of a YAML file. Its platform is a configuration for\n' +
    '"spillway serve", on simulated GPUs. The exit code is 1 when an expectation of the scenario does not hold.\n' +
    'With --replay and no SCENARIO the platform is that of your configuration, and --set asks "what if":\n' +
    'platform.pools.0.replicas=5 for more GPUs, traffic.acme=0.5 for half the requests of a tenant, load=2 for all.',
  argument: 'SCENARIO',
  flags: {
    seed: { type: 'string', value: 'N', meaning: 'same seed, same run (default 1)' },
    set: {
      type: 'string',
      value: 'PATH=VALUE',
      meaning: 'change one value of the scenario; may be repeated',
      multiple: true,
    },
    compare: {
      type: 'string',
      value: 'A,B',
      meaning: 'also run under other policies: fifo, bounded, codel, gradient, vtc, drr … or PATH=VALUE',
    },
    trace: { type: 'string', value: 'FILE', meaning: 'play a recorded workload instead of the scenario\u2019s own' },
    replay: {
      type: 'string',
      value: 'FILE',
      meaning: 'play a recording of "spillway record" (or a trace) on the platform of the configuration',
    },
    profile: {
      type: 'string',
      value: 'PROFILE',
      meaning: 'GPU of every pool: a name of the catalogue, or a FILE.json',
    },
    config: CONFIG_FLAG,
    speed: { type: 'string', value: 'FACTOR', meaning: "the trace's time runs this much faster (default 1)" },
    report: REPORT_FLAG,
    json: JSON_FLAG,
    progress: { type: 'boolean', meaning: 'a line "progress PERCENT" on standard error now and then, for programs' },
  },
  examples: [
    'spillway simulate noisy-neighbour',
    'spillway simulate viral-spike-20x --seed 7 --set platform.pools.0.replicas=4',
    'spillway simulate burst --compare fifo,vtc,no-ladder --report out',
    'spillway simulate azure-conv --trace conv.csv --speed 2',
    'spillway simulate --replay monday.jsonl --set platform.pools.0.replicas=5 --set traffic.acme=0.5',
  ],
  async run(flags, io) {
    // Loaded when the command runs: help and version need none of the platform.
    const { loadScenario, shippedScenarios } = await import('../sim/scenario/fs-scenario.ts')
    const { parseValue, compareVariants } = await import('../sim/compare-variants.ts')
    const name = textFlag(flags, 'argument')
    const replay = textFlag(flags, 'replay')
    if (name === undefined && replay === undefined)
      throw new UsageError(`which scenario? One of: ${shippedScenarios().join(', ')}.`)
    if (replay !== undefined && flags['trace'] !== undefined)
      throw new UsageError('give --replay or --trace, not both.')
    const trace = replay ?? textFlag(flags, 'trace')
    const factor = numberFlag(flags, 'speed', { above: 0 }) ?? 1
    const { file } = name === undefined ? await replayed(replay as string, factor, flags, io) : loadScenario(name)
    const progress = new ProgressLine(process.stderr)
    const tellPercent = percentTeller(io)
    const simulation = await compareVariants(file, {
      seed: seedOf(flags),
      set: { ...profileSetting(flags), ...settingsOf(flags, parseValue) },
      compare: textFlag(flags, 'compare')?.split(',') ?? [],
      trace: trace === undefined ? undefined : { path: trace, factor },
      onProgress: (what, atS, durationS, ratioOfAll) => {
        const pace = `${progress.speedOf(what, atS)}${progress.timeLeft(ratioOfAll)}`
        progress.show(what, atS / durationS, `${Math.round(atS)} of ${durationS} s${pace}`)
        if (flags['progress'] === true) tellPercent(Math.floor(ratioOfAll * 100))
      },
      wallMs,
    })
    progress.clear()
    for (const note of simulation.notes) io.err(`Note: ${note}`)
    const reports = [simulation.report, ...Object.values(simulation.variants)]
    const isLawful = reports.every(({ laws }) => laws.length === 0)
    const isFine = isLawful && simulation.expectations.every(({ holds }) => holds)
    io.out(flags['json'] === true ? asJson(simulation) : asText(simulation))
    const folder = textFlag(flags, 'report')
    if (folder !== undefined) {
      const { writeReport } = await import('../sim/report/fs-report.ts')
      io.err(`The page: ${writeReport(folder, { ...simulation, isLive: false })}`)
    }
    return isFine ? 0 : 1
  },
}

/** The scenario of a recording: the platform of the configuration, on simulated GPUs. */
async function replayed(path: string, factor: number, flags: FlagValues, io: Io): Promise<{ file: ConfigFile }> {
  const { loadConfig } = await import('../config/load.ts')
  const { openReplay } = await import('../sim/scenario/fs-replay.ts')
  const config = loadConfig({ path: textFlag(flags, 'config') })
  const { file, notes } = openReplay(config, { path, factor, isProfileGiven: flags['profile'] !== undefined })
  for (const note of notes) io.err(`Note: ${note}`)
  return { file }
}

function profileSetting(flags: FlagValues): Record<string, unknown> {
  const profile = textFlag(flags, 'profile')
  return profile === undefined ? {} : { 'platform.pools.*.backend.profile': profile }
}

/** Each percent is told once. */
function percentTeller(io: Io): (percent: number) => void {
  let told = -1
  return (percent) => {
    if (percent > told) io.err(`progress ${percent}`)
    told = Math.max(told, percent)
  }
}

function seedOf(flags: FlagValues): number {
  const text = textFlag(flags, 'seed') ?? '1'
  const seed = Number(text)
  if (!Number.isInteger(seed) || seed < 0) throw new UsageError(`--seed is "${text}". Give a whole number.`)
  return seed
}

function settingsOf(flags: FlagValues, parse: (text: string) => unknown): Record<string, unknown> {
  const given = flags['set']
  const list = Array.isArray(given) ? given : typeof given === 'string' ? [given] : []
  return Object.fromEntries(
    list.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw new UsageError(`--set is "${text}". Write it as path=value.`)
      return [text.slice(0, at), parse(text.slice(at + 1))]
    }),
  )
}

function asJson({ report, variants, expectations }: Simulation): string {
  return wholeJson({ ...report, variants, expectations })
}

function asText({ report, variants, expectations }: Simulation): string {
  const good = (text: string): string => styleText('green', text, { stream: process.stdout })
  const bad = (text: string): string => styleText('red', text, { stream: process.stdout })
  const lines = [reportTable(report)]
  for (const [name, variant] of Object.entries(variants)) lines.push('', `Variant ${name}`, reportTable(variant))
  if (expectations.length > 0) lines.push('', 'Expectations')
  for (const { what, holds, because } of expectations) {
    lines.push(`  ${holds ? good('holds') : bad('FAILS')}  ${what}: ${because}`)
  }
  for (const { law, ticketId, what } of report.laws) lines.push(`  ${bad('BROKEN')} ${law} ${ticketId}: ${what}`)
  const { seconds, speedup, requestsPerS } = report.wall
  lines.push('', `${seconds.toFixed(1)} s, ${timesRealTime(speedup)}, ${Math.round(requestsPerS)} requests a second`)
  return lines.join('\n')
}
