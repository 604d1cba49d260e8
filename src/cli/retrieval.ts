import { loadConfig } from '../config/load.ts'
import { CONFIG_FLAG, type Command, textFlag } from './command.ts'
import { runUntilSignal } from './run-until-signal.ts'

export const retrievalCommand: Command = {
  name: 'retrieval',
  summary: 'run corpora and searches in a process of their own, for several gateways',
  about:
    'Gateways use this process through RETRIEVAL_URL; both sides need the same RETRIEVAL_KEY. It serves /health,\n' +
    '/health/ready and /metrics. Without DATABASE_URL, corpora are stored in the embedded database.',
  flags: {
    config: CONFIG_FLAG,
    host: { type: 'string', value: 'ADDRESS', meaning: 'address to listen on' },
    port: { type: 'string', short: 'p', value: 'NUMBER', meaning: 'port to listen on' },
  },
  examples: ['RETRIEVAL_KEY=… spillway retrieval', 'spillway retrieval --host 0.0.0.0 --config spillway.yaml'],
  async run(flags, io) {
    const config = loadConfig({
      path: textFlag(flags, 'config'),
      flags: { 'retrieval.listenHost': textFlag(flags, 'host'), 'retrieval.listenPort': textFlag(flags, 'port') },
    })
    for (const warning of config.warnings) io.err(`spillway: ${warning}`)
    // Loaded when the command runs: help and version need none of it.
    const { serveRetrieval } = await import('../main/retrieval-server.ts')
    return runUntilSignal(() => serveRetrieval(config, io))
  },
}
