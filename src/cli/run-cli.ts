import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import type { Io } from '../base/running.ts'
import { nearest } from '../config/nearest.ts'
import { type Command, type FlagValues, parseArgsOptions, UsageError } from './command.ts'
import { explainFailure } from './explain-failure.ts'
import { helpFor, helpForCommand, helpForGroup } from './help.ts'
import { serveCommand } from './serve.ts'
import { withoutTypedSecrets } from './typed-secrets.ts'

/** Runs the command that the words name, and returns its exit code. A failure is one clear line on `err`. */
export async function runCli(words: readonly string[], io: Io): Promise<number> {
  try {
    return await dispatch(words, io)
  } catch (error) {
    const { lines, exitCode } = explainFailure(error)
    for (const line of lines) io.err(line.includes('\n') ? line : `spillway: ${line}`)
    return exitCode
  }
}

/** The commands that the first word can mean. A server starts without the files of all other commands. */
const commandsFor = async (first: string | undefined): Promise<readonly Command[]> =>
  first === serveCommand.name ? [serveCommand] : (await import('./commands.ts')).commands

async function dispatch(words: readonly string[], io: Io): Promise<number> {
  const [first] = words
  const commands = await commandsFor(first)
  if (first === undefined || first === '--help' || first === '-h') {
    io.out(helpFor(commands))
    return first === undefined ? 2 : 0
  }
  if (first === '--version' || first === '-v') {
    io.out(versionText(words.includes('--json')))
    return 0
  }
  if (first === 'help') return dispatch([...words.slice(1), '--help'], io)
  const group = commandsUnder(commands, first)
  const isGroupOnly = group.length > 0 && !commands.some(({ name }) => name === first)
  if (isGroupOnly && (words[1] === '--help' || words[1] === '-h')) {
    io.out(helpForGroup(first, group))
    return 0
  }
  const { command, rest } = findCommand(commands, words)
  const flags = parseFlags(command, rest)
  if (flags['help'] === true) {
    io.out(helpForCommand(command, commandsUnder(commands, command.name)))
    return 0
  }
  return command.run(withoutTypedSecrets(flags, io), io)
}

/** The commands that begin with this word and have one more: `config check` is under `config`. */
const commandsUnder = (commands: readonly Command[], word: string): readonly Command[] =>
  commands.filter(({ name }) => name.startsWith(`${word} `))

function versionText(isJson: boolean): string {
  const { version } = packageJson
  const node = process.versions.node
  return isJson ? JSON.stringify({ version, node }) : `spillway ${version} (Node ${node})`
}

/** The command with the longest name that the words begin with. */
function findCommand(
  commands: readonly Command[],
  words: readonly string[],
): { command: Command; rest: readonly string[] } {
  for (let count = Math.min(2, words.length); count > 0; count--) {
    const name = words.slice(0, count).join(' ')
    const command = commands.find((candidate) => candidate.name === name)
    if (command !== undefined) return { command, rest: words.slice(count) }
  }
  throw new UsageError(unknownCommand(commands, words.filter((word) => !word.startsWith('-')).slice(0, 2)))
}

function unknownCommand(commands: readonly Command[], words: readonly string[]): string {
  const group = commandsUnder(commands, words[0] ?? '')
  if (group.length > 0 && words.length === 1) {
    return `"${words[0]}" needs one more word. Try: ${group.map((command) => `spillway ${command.name}`).join(', ')}.`
  }
  const names = commands.map((command) => command.name)
  const typed = words.join(' ')
  const guess = nearest(typed, names) ?? nearest(words[0] ?? '', names)
  const advice = guess === undefined ? 'See: spillway --help' : `Did you mean "spillway ${guess}"?`
  return typed === '' ? 'a flag alone is no command. See: spillway --help' : `"${typed}" is not a command. ${advice}`
}

function parseFlags(command: Command, words: readonly string[]): FlagValues {
  try {
    const allowPositionals = command.argument !== undefined
    const parsed = parseArgs({ args: [...words], options: parseArgsOptions(command), allowPositionals })
    const [argument, extra] = parsed.positionals
    if (extra !== undefined) throw new UsageError(oneWordTooMany(command, extra))
    return { ...(parsed.values as FlagValues), argument }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(flagProblem(command, words, error as NodeJS.ErrnoException))
  }
}

function flagProblem(command: Command, words: readonly string[], error: NodeJS.ErrnoException): string {
  const see = `See: spillway ${command.name} --help`
  if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const typed = /'(-[^']*)'/.exec(error.message)?.[1] ?? words.find((word) => word.startsWith('-')) ?? ''
    const guess = nearest(typed.replace(/^-+/, ''), Object.keys(command.flags))
    return `${typed} is not a flag of "${command.name}". ${guess === undefined ? see : `Did you mean --${guess}?`}`
  }
  if (error.code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') {
    const extra = /'([^']*)'/.exec(error.message)?.[1]
    return oneWordTooMany(command, extra ?? '')
  }
  return `${error.message.split('\n')[0]?.replace(/\.$/, '')}. ${see}`
}

const oneWordTooMany = (command: Command, word: string): string =>
  `"${word}" is one word too many for "${command.name}". See: spillway ${command.name} --help`
