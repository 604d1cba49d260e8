import { type ChildProcess, spawn } from 'node:child_process'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, secondsToUs } from '../base/clock.ts'
import { cutRecordedHour } from './fs-recorded-hour.ts'
import { readScenarioTree, removeFolder, scenarioNames, writeScenario } from './fs-scenarios.ts'
import {
  describeRecorded,
  describeScenario,
  RECORDED_HOUR,
  type WhatIfAsk,
  type WhatIfReport,
  type WhatIfScenario,
  whatIfReport,
  whatIfSettings,
} from './what-if.ts'

/**
 * The simulator beside the server: a process of its own at the lowest priority, one at a time, that ends with whoever
 * asked, with its time, with too much output, and with the server. It gets nothing of our environment, where keys are.
 */
export interface WhatIfStep {
  /** 1 is the scenario as it is, 2 the changed one. */
  readonly run: 1 | 2
  /** Share of this run's simulated time that has passed. */
  readonly ratio: number
}

export type WhatIfEnd =
  | { readonly kind: 'done'; readonly asIs: WhatIfReport; readonly changed: WhatIfReport; readonly command: string }
  | { readonly kind: 'failed'; readonly problem: string }

export interface LiveWhatIfOptions {
  readonly clock: Clock
  /** The program; the pinned Node with our own command if absent. */
  readonly program?: readonly [file: string, ...args: string[]]
  /** The recording that the server keeps; absent where it keeps none. */
  readonly recording?: LiveRecording
  readonly runUsMax?: number
  readonly outputCharsMax?: number
}

export interface LiveRecording {
  readonly path: string
  /** The platform as it is configured now, on simulated GPUs, as the tree of a scenario. */
  readonly scenario: (durationS: number) => unknown
}

/** What is simulated: a shipped scenario by its name, or files that were made for this comparison. */
interface Played {
  readonly tree: unknown
  /** Words of `spillway simulate`, and the same for people. */
  readonly words: readonly string[]
  readonly shown: string
  readonly isRecorded: boolean
  remove(): void
}

const CLI = join(import.meta.dirname, '..', 'cli', 'cli.ts')
const RUN_US_MAX = secondsToUs(120)
const HOUR_S = 3_600
const OUTPUT_CHARS_MAX = 16_000_000
const COMPLAINT_CHARS_MAX = 1_000
/** Memory of the child's heap, in MB. */
const HEAP_MB = 1_024

export class LiveWhatIf {
  readonly #options: LiveWhatIfOptions
  #running: ChildProcess | undefined
  #isTaken = false
  #isClosed = false

  constructor(options: LiveWhatIfOptions) {
    this.#options = options
  }

  names(): readonly string[] {
    return this.#options.recording === undefined ? scenarioNames() : [RECORDED_HOUR, ...scenarioNames()]
  }

  /** Undefined when no shipped scenario has this name. */
  scenario(name: string): WhatIfScenario | undefined {
    const { recording } = this.#options
    if (name === RECORDED_HOUR && recording !== undefined) return describeRecorded(recording.scenario(HOUR_S))
    const tree = readScenarioTree(name)
    return tree === undefined ? undefined : describeScenario(name, tree)
  }

  /** Runs both; `stop` ends them early. Undefined: another comparison runs, or the server stops. */
  begin(ask: WhatIfAsk, onStep: (step: WhatIfStep) => void): { end: Promise<WhatIfEnd>; stop: () => void } | undefined {
    if (this.#isTaken || this.#isClosed) return undefined
    this.#isTaken = true
    let [isStopped, isEnded] = [false, false]
    const stop = (): void => {
      isStopped = true
      // What runs after our end is somebody else's.
      if (!isEnded) this.#running?.kill('SIGKILL')
    }
    const end = this.#both(ask, onStep, () => isStopped || this.#isClosed).finally(() => {
      isEnded = true
      this.#isTaken = false
    })
    return { end, stop }
  }

  /** The server stops: what runs is ended, and nothing more begins. */
  close(): void {
    this.#isClosed = true
    this.#running?.kill('SIGKILL')
  }

  get isRunning(): boolean {
    return this.#isTaken
  }

  async #both(ask: WhatIfAsk, onStep: (step: WhatIfStep) => void, isOver: () => boolean): Promise<WhatIfEnd> {
    const played = this.#played(ask.scenario)
    if (typeof played === 'string') return { kind: 'failed', problem: played }
    try {
      return await this.#compare(played, ask, onStep, isOver)
    } finally {
      played.remove()
    }
  }

  /** What to simulate, or why there is nothing. */
  #played(name: string): Played | string {
    const { recording } = this.#options
    if (name !== RECORDED_HOUR || recording === undefined) {
      const tree = readScenarioTree(name)
      if (tree === undefined) return 'No shipped scenario has this name.'
      return { tree, words: [name], shown: name, isRecorded: false, remove: () => {} }
    }
    const hour = cutRecordedHour(recording.path, tmpdir())
    if (hour === undefined) return 'Nothing was recorded yet: the recording (record.path) has no request.'
    const tree = recording.scenario(hour.durationS)
    const words = [writeScenario(hour.folder, tree), '--replay', hour.tracePath]
    const shown = '--replay RECORDING'
    return { tree, words, shown, isRecorded: true, remove: () => removeFolder(hour.folder) }
  }

  async #compare(
    { tree, words, shown, isRecorded }: Played,
    ask: WhatIfAsk,
    onStep: (step: WhatIfStep) => void,
    isOver: () => boolean,
  ): Promise<WhatIfEnd> {
    const settings = whatIfSettings(tree, ask, isRecorded)
    if ('problem' in settings) return { kind: 'failed', problem: settings.problem }
    const reports: WhatIfReport[] = []
    for (const [run, set] of [
      [1, []],
      [2, settings.set],
    ] as const) {
      if (isOver()) return STOPPED
      const ended = await this.#run(words, set, (ratio) => onStep({ run, ratio }))
      if (isOver()) return STOPPED
      if (typeof ended === 'string') return { kind: 'failed', problem: ended }
      reports.push(whatIfReport(ended.report))
    }
    const [asIs, changed] = reports as [WhatIfReport, WhatIfReport]
    const command = ['npx spillway simulate', shown, ...settings.set.map((each) => `--set ${each}`)].join(' ')
    return { kind: 'done', asIs, changed, command }
  }

  /** The report, or what went wrong. */
  async #run(
    words: readonly string[],
    set: readonly string[],
    onRatio: (ratio: number) => void,
  ): Promise<{ readonly report: unknown } | string> {
    const { clock, runUsMax = RUN_US_MAX, outputCharsMax = OUTPUT_CHARS_MAX } = this.#options
    const [file, ...args] = this.#options.program ?? [process.execPath, `--max-old-space-size=${HEAP_MB}`, CLI]
    // The scenario's own variants and expectations are left out: they would be simulated too.
    const changes = ['variants={}', 'expect=[]', ...set].flatMap((each) => ['--set', each])
    const child = spawn(file, [...args, 'simulate', ...words, '--json', '--progress', ...changes], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {},
    })
    this.#running = child
    lower(child)
    let [out, complaint, because] = ['', '', '']
    const kill = (why: string): void => {
      because ||= why
      child.kill('SIGKILL')
    }
    const forget = clock.at(clock.now() + runUsMax, () =>
      kill(
        `The simulation took more than ${Math.round(runUsMax / 1e6)} s. It has the lowest priority, so a busy machine keeps it waiting. ` +
          'Choose a shorter scenario, or run it by hand.',
      ),
    )
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (out.length + text.length > outputCharsMax) kill('The simulation said too much.')
      else out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      const lines = (complaint + text).split('\n')
      const last = lines.pop() as string
      const others = lines.filter((line) => {
        const percent = /^progress (\d+)$/.exec(line)?.[1]
        if (percent !== undefined) onRatio(Number(percent) / 100)
        return percent === undefined
      })
      complaint = [...others, last].join('\n').slice(-COMPLAINT_CHARS_MAX)
    })
    await new Promise<void>((resolve) => {
      child.once('close', () => resolve())
      child.once('error', (error) => {
        because ||= `The simulator could not start: ${error.message}.`
        resolve()
      })
    })
    forget()
    this.#running = undefined
    if (because !== '') return because
    try {
      return { report: JSON.parse(out) as unknown }
    } catch {
      return `The simulator ended without a report: ${complaint.trim() || 'it said nothing'}`
    }
  }
}

const STOPPED: WhatIfEnd = { kind: 'failed', problem: 'It was stopped.' }

/** Requests come first. A child that has ended already has no priority to change. */
function lower({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW)
  } catch {
    // It has ended.
  }
}
