import { ConfigError } from '../config/config-error.ts'
import { demoBindProblem, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { processCountOf } from '../host/live-cores.ts'
import { CONFIG_FLAG, type Command, JSON_FLAG, textFlag } from './command.ts'

export const configCheckCommand: Command = {
  name: 'config check',
  summary: 'check the settings; name each problem, its place and what to do',
  about: 'Reads the file and the environment as "serve" would, and starts nothing. Exit code 1 if something is wrong.',
  flags: { config: CONFIG_FLAG, json: JSON_FLAG },
  examples: ['spillway config check --config spillway.yaml', 'spillway config check --json'],
  run(flags, io) {
    const { config, problems } = check(textFlag(flags, 'config'))
    if (flags['json'] === true) {
      const warnings = config?.warnings ?? []
      io.out(JSON.stringify({ ok: problems.length === 0, file: config?.file ?? null, problems, warnings }))
    } else if (config !== undefined && problems.length === 0) {
      for (const warning of config.warnings) io.err(`spillway: ${warning}`)
      io.out(describe(config))
    } else {
      for (const problem of problems) io.err(`spillway: ${problem}`)
    }
    return problems.length === 0 ? 0 : 1
  },
}

function check(path: string | undefined): { config?: Config; problems: readonly string[] } {
  try {
    const config = loadConfig({ path })
    const problem = demoBindProblem(config)
    return { config, problems: problem === undefined ? [] : [`${problem}.`] }
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems }
    throw error
  }
}

function describe(config: Config): string {
  const counts = [
    counted(config.models.length, 'model'),
    counted(config.pools.length, 'pool'),
    counted(config.tenants.length, 'tenant'),
    ...(config.server.processes === 1 ? [] : [counted(processCountOf(config), 'process')]),
  ]
  return `${config.file ?? 'The built-in demo settings'}: good (${counts.join(', ')}).`
}

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : noun.endsWith('s') ? 'es' : 's'}`
