import { LiveClock } from '../base/live-clock.ts'
import type { Io } from '../base/running.ts'
import { ConfigError } from '../config/config-error.ts'
import { demoBindProblem, loadConfig } from '../config/load.ts'
import { describeReload } from '../control/describe-reload.ts'
import type { Served } from '../main/serve.ts'
import { CONFIG_FLAG, type Command, textFlag, UsageError } from './command.ts'
import { explainFailure } from './explain-failure.ts'
import { FileWatch } from './fs-watch-file.ts'
import { runUntilSignal, STOP_SIGNALS } from './run-until-signal.ts'

export const serve: Command = {
  name: 'serve',
  summary: 'run the platform: one OpenAI-compatible endpoint in front of your engines',
  about:
    'Without a configuration file it starts on loopback with two simulated models and three demo tenants, whose keys\n' +
    'it prints. SIGTERM (or Ctrl-C) stops it gently; a second one ends it at once. SIGUSR2 reads the configuration file\n' +
    'again without losing a request, all of it or nothing; so do SIGHUP where there is no terminal, "spillway reload",\n' +
    'and every change of the file with --watch. The server says what changed and what needs a restart.',
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
    const load = () =>
      loadConfig({
        path: textFlag(flags, 'config'),
        flags: { 'server.host': textFlag(flags, 'host'), 'server.port': textFlag(flags, 'port') },
      })
    const config = load()
    const problem = demoBindProblem(config)
    if (problem !== undefined) throw new ConfigError([`${problem}.`])
    for (const warning of config.warnings) io.err(`spillway: ${warning}`)
    const watched = flags['watch'] === true ? config.file : undefined
    if (flags['watch'] === true && watched === undefined)
      throw new UsageError('--watch needs a file to watch. Give one with --config, or set SPILLWAY_CONFIG.')
    // Loaded only now: help, version and a broken configuration need none of the platform.
    const { serve: start } = await import('../main/serve.ts')
    const isAttended = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
    // A terminal that is closed sends SIGHUP to end its programs; without one, SIGHUP means what it means to a daemon.
    const stopSignals = isAttended ? STOP_SIGNALS : STOP_SIGNALS.filter((signal) => signal !== 'SIGHUP')
    return runUntilSignal(
      async () => {
        const clock = new LiveClock()
        const served = await start(config, io, clock, load)
        const again = (because: string): void => void reload(served, load, because, io)
        process.on('SIGUSR2', () => again('SIGUSR2'))
        if (!isAttended) process.on('SIGHUP', () => again('SIGHUP'))
        const watch =
          watched === undefined
            ? undefined
            : new FileWatch({ path: watched, clock, onChange: () => again('the file changed') })
        return {
          ...served,
          close: () => {
            watch?.stop()
            return served.close()
          },
        }
      },
      undefined,
      undefined,
      stopSignals,
    )
  },
}

/** A file that is broken now changes nothing: the platform goes on with what it has. */
async function reload(served: Served, load: Parameters<Served['reload']>[0], because: string, io: Io): Promise<void> {
  try {
    const answer = await served.reload(load, { by: 'operator', because })
    const said = answer.kind === 'refused' ? answer.refusal.because : describeReload(answer.reload)
    io.err(`spillway: read the configuration again (${because}): ${said}`)
  } catch (error) {
    for (const line of explainFailure(error).lines) io.err(`spillway: ${line}`)
  }
}
