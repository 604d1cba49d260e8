import type { Io } from '../base/running.ts'
import { ConfigError } from '../config/config-error.ts'
import { demoBindProblem, loadConfig } from '../config/load.ts'
import { CONFIG_FLAG, type Command, textFlag } from './command.ts'
import { explainFailure } from './explain-failure.ts'
import { runUntilSignal } from './run-until-signal.ts'

export const serve: Command = {
  name: 'serve',
  summary: 'run the platform: one OpenAI-compatible endpoint in front of your engines',
  about:
    'Without a configuration file it starts on loopback with two simulated models and three demo tenants, whose keys\n' +
    'it prints. SIGTERM (or Ctrl-C) stops it gently; a second one ends it at once. SIGUSR2 reads the tenants of the\n' +
    'configuration file again, without losing a request.',
  flags: {
    config: CONFIG_FLAG,
    host: { type: 'string', value: 'ADDRESS', meaning: 'address to listen on (or set HOST)' },
    port: { type: 'string', short: 'p', value: 'NUMBER', meaning: 'port to listen on (or set PORT)' },
  },
  examples: ['spillway serve', 'spillway serve --port 9000', 'spillway serve --config spillway.yaml'],
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
    // Loaded only now: help, version and a broken configuration need none of the platform.
    const { serve: start } = await import('../main/serve.ts')
    return runUntilSignal(async () => {
      const served = await start(config, io)
      process.on('SIGUSR2', () => reload(() => served.reload(load()), io))
      return served
    })
  },
}

/** A file that is broken now changes nothing: the platform goes on with what it has. */
function reload(again: () => number, io: Io): void {
  try {
    io.err(`spillway: read the configuration again; ${again()} tenants changed.`)
  } catch (error) {
    const { lines } = explainFailure(error)
    for (const line of lines) io.err(`spillway: ${line}`)
    io.err('spillway: nothing was changed.')
  }
}
