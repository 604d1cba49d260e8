import type { Io } from '../base/running.ts'
import { DEMO_ADMIN_KEY, DEMO_KEYS } from '../config/demo.ts'
import { readSecretFile } from '../config/fs-secret-files.ts'
import { type FlagValues, UsageError } from './command.ts'

/**
 * A secret on a command line can be read by every user of the machine, and stays in the shell's history. A flag for one
 * takes `@FILE` instead; a secret itself still works, with a warning. The demo's keys are published and may be typed.
 */
const SECRET_FLAGS = ['key', 'api-key'] as const

const PUBLISHED: ReadonlySet<string> = new Set([DEMO_ADMIN_KEY, ...DEMO_KEYS.map(({ secret }) => secret)])

export function withoutTypedSecrets(flags: FlagValues, io: Io, argv: readonly string[] = process.argv): FlagValues {
  const found: Record<string, string> = {}
  for (const name of SECRET_FLAGS) {
    const typed = flags[name]
    if (typeof typed !== 'string' || PUBLISHED.has(typed)) continue
    if (typed.startsWith('@')) {
      const read = readSecretFile(typed.slice(1))
      if ('problem' in read) throw new UsageError(`--${name} names the file ${typed.slice(1)}, which ${read.problem}.`)
      found[name] = read.value
      continue
    }
    // Called from within a program, nothing was typed.
    if (!argv.some((word) => word === typed || word.endsWith(`=${typed}`))) continue
    const others = name === 'key' ? ', or set SPILLWAY_ADMIN_KEY_FILE or SPILLWAY_KEY_FILE' : ''
    io.err(
      `spillway: --${name} has a secret on the command line, where every user of this machine can read it. ` +
        `Give --${name} @FILE${others}.`,
    )
  }
  return { ...flags, ...found }
}
