import { LiveClock } from '../base/live-clock.ts'
import type { Io, Running } from '../base/running.ts'
import { ConfigError } from '../config/config-error.ts'
import { demoBindProblem, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { describeReload } from '../control/describe-reload.ts'
import { processCountOf } from '../host/live-cores.ts'
import type { Served } from '../main/serve.ts'
import { CONFIG_FLAG, type Command, textFlag, UsageError } from './command.ts'
import { explainFailure } from './explain-failure.ts'
import { FileWatch, readIfThere, SecretWatch, secretTexts } from './fs-watch-file.ts'
import { keepCompiledModules } from './live-compile-cache.ts'
import { shrinkHeap } from './live-heap.ts'
import { runUntilSignal, STOP_SIGNALS } from './run-until-signal.ts'
import { superviseUntilSignal } from './serve-host.ts'

export const serveCommand: Command = {
  name: 'serve',
  summary: 'run the platform: one OpenAI-compatible endpoint in front of your engines',
  about:
    'Without a configuration file it starts on loopback with two simulated models and three demo tenants, whose keys\n' +
    'it prints. SIGTERM (or Ctrl-C) stops it gently; a second one ends it at once. SIGUSR2 reads the configuration file\n' +
    'again without losing a request, all of it or nothing; so do SIGHUP where there is no terminal, "spillway reload",\n' +
    'and every change of the file with --watch. The server says what changed and what needs a restart. With\n' +
    'server.processes of 2 or more, SIGUSR1 or "spillway restart" replaces the processes one after the other.',
  flags: {
    config: CONFIG_FLAG,
    host: { type: 'string', value: 'ADDRESS', meaning: 'address to listen on (or set HOST)' },
    port: { type: 'string', short: 'p', value: 'NUMBER', meaning: 'port to listen on (or set PORT)' },
    watch: { type: 'boolean', meaning: 'take up the configuration file whenever it changes' },
  },
  examples: [
    'spillway serve',
    'spillway serve --port 9000',
    'spillway serve --config spillway.yaml',
    'spillway serve --config spillway.yaml --watch',
  ],
  async run(flags, io) {
    const settingFlags = { 'server.host': textFlag(flags, 'host'), 'server.port': textFlag(flags, 'port') }
    const load = () => loadConfig({ path: textFlag(flags, 'config'), flags: settingFlags })
    const watched = flags['watch'] === true ? fileToWatch(load()) : undefined
    // The text is read before the settings, so that a change in between is noticed.
    const taken = watched === undefined ? undefined : readIfThere(watched)
    const secretFiles = load().secretFiles ?? []
    const secrets = { files: secretFiles, taken: secretTexts(secretFiles) }
    const config = load()
    const problem = demoBindProblem(config)
    if (problem !== undefined) throw new ConfigError([`${problem}.`])
    for (const warning of config.warnings) io.err(`spillway: ${warning}`)
    const isAttended = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
    // A terminal that is closed sends SIGHUP to end its programs; without one, SIGHUP means what it means to a daemon.
    const reloadSignals = isAttended ? (['SIGUSR2'] as const) : (['SIGUSR2', 'SIGHUP'] as const)
    const stopSignals = isAttended ? STOP_SIGNALS : STOP_SIGNALS.filter((signal) => signal !== 'SIGHUP')
    const processCount = processCountOf(config)
    if (processCount > 1) {
      const settings = { configPath: textFlag(flags, 'config'), flags: settingFlags }
      const watches = { watched, taken, secrets }
      return superviseUntilSignal({ config, processCount, io, settings, ...watches, reloadSignals, stopSignals })
    }
    const start = async (): Promise<Running> => {
      const triggers = new ReloadTriggers(load, io, reloadSignals)
      // Loaded only now: help, version and a broken configuration need none of the platform.
      const { serve: startServer } = await import('../main/serve.ts')
      const clock = new LiveClock()
      shrinkHeap()
      const served = await startServer(config, io, clock, load)
      const again = (): void => triggers.reload('the file changed')
      const watch = watched === undefined ? undefined : new FileWatch({ path: watched, clock, taken, onChange: again })
      const onSecret = (): void => triggers.reload('a secret changed')
      const secretWatch = new SecretWatch({ clock, ...secrets, onChange: onSecret })
      triggers.begin(served)
      keepCompiledModules()
      return {
        ...served,
        close: () => {
          watch?.stop()
          secretWatch.stop()
          triggers.stop()
          return served.close()
        },
      }
    }
    return runUntilSignal(start, undefined, undefined, stopSignals)
  },
}

function fileToWatch({ file }: Config): string {
  if (file !== undefined) return file
  throw new UsageError('--watch needs a file to watch. Give one with --config, or set SPILLWAY_CONFIG.')
}

/** Signals that ask for a reload. A signal that comes while the server starts is answered after the start. */
class ReloadTriggers {
  readonly #load: () => Config
  readonly #io: Io
  readonly #listeners: ReadonlyArray<readonly [NodeJS.Signals, () => void]>
  #served: Served | undefined
  #early: string | undefined

  constructor(load: () => Config, io: Io, signals: readonly NodeJS.Signals[]) {
    this.#load = load
    this.#io = io
    this.#listeners = signals.map((signal) => [signal, () => this.reload(signal)])
    for (const [signal, listener] of this.#listeners) process.on(signal, listener)
  }

  begin(served: Served): void {
    this.#served = served
    if (this.#early !== undefined) this.reload(this.#early)
  }

  stop(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
  }

  reload(because: string): void {
    if (this.#served === undefined) this.#early = because
    else void this.#reload(this.#served, because)
  }

  /** A file with mistakes changes nothing: the platform goes on with its settings. */
  async #reload(served: Served, because: string): Promise<void> {
    try {
      const answer = await served.reload(this.#load, { by: 'operator', because })
      const said = answer.kind === 'refused' ? answer.refusal.because : describeReload(answer.reload)
      this.#io.err(`spillway: read the configuration again (${because}): ${said}`)
    } catch (error) {
      for (const line of explainFailure(error).lines) this.#io.err(`spillway: ${line}`)
    }
  }
}
