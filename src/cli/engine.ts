import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Io, Running } from '../main/running.ts'
import { CONFIG_FLAG, type Command, textFlag, UsageError } from './command.ts'
import { runUntilSignal } from './run-until-signal.ts'

/** Loaded when the command runs: help and version need none of the platform. */
const MAIN: string = '../main/engine-server.ts'

type StartEngine = (config: Config, io: Io, options: { readonly model: string }) => Promise<Running>

export const engine: Command = {
  name: 'engine',
  summary: 'run one simulated engine alone; it speaks vLLM\u2019s API and metrics',
  about: 'For trying a router, a dashboard or an autoscaler without a GPU: to them it looks like vLLM.',
  flags: {
    config: CONFIG_FLAG,
    host: { type: 'string', value: 'ADDRESS', meaning: 'address to listen on' },
    port: { type: 'string', short: 'p', value: 'NUMBER', meaning: 'port to listen on' },
    model: {
      type: 'string',
      short: 'm',
      value: 'NAME',
      meaning: 'the configured model that it serves (default: the first)',
    },
  },
  examples: ['spillway engine', 'spillway engine --model spill-small --port 8001'],
  async run(flags, io) {
    const config = loadConfig({
      path: textFlag(flags, 'config'),
      flags: { 'engine.listenHost': textFlag(flags, 'host'), 'engine.listenPort': textFlag(flags, 'port') },
    })
    const names = config.models.map((model) => model.name)
    const model = textFlag(flags, 'model') ?? names[0]
    if (model === undefined || !names.includes(model)) {
      throw new UsageError(`no model "${model}" is configured. Known: ${names.join(', ')}.`)
    }
    const { serveEngine } = (await import(MAIN)) as { serveEngine: StartEngine }
    return runUntilSignal(() => serveEngine(config, io, { model }))
  },
}
