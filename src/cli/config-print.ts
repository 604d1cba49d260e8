import { stringify } from 'yaml'
import { loadConfig } from '../config/load.ts'
import { redacted } from '../config/redact.ts'
import { CONFIG_FLAG, type Command, JSON_FLAG, textFlag } from './command.ts'

export const configPrintCommand: Command = {
  name: 'config print',
  summary: 'print the settings in force, defaults included, secrets hidden',
  about: 'Prints what "serve" would run with: flags, environment, file and defaults merged.',
  flags: { config: CONFIG_FLAG, json: JSON_FLAG },
  examples: ['spillway config print', 'MAX_QUEUE_SIZE=50 spillway config print --json'],
  run(flags, io) {
    const shown = redacted(loadConfig({ path: textFlag(flags, 'config') }))
    io.out(flags['json'] === true ? JSON.stringify(shown, null, 2) : stringify(shown).trimEnd())
    return 0
  },
}
