import { styleText } from 'node:util'
import { type Command, type Flag, HELP_FLAG } from './command.ts'

/** Colours appear on a terminal only: `styleText` checks the stream and NO_COLOR. */
const heading = (text: string) => styleText('bold', text, { stream: process.stdout })
const quiet = (text: string) => styleText('dim', text, { stream: process.stdout })

export function helpFor(commands: readonly Command[]): string {
  return [
    `${heading('spillway')}: a multi-tenant LLM inference platform that keeps its latency promises under overload`,
    '',
    heading('Usage'),
    '  spillway COMMAND [flags]',
    '',
    heading('Commands'),
    ...commandRows(commands),
    '',
    heading('Flags'),
    ...columns([
      ['-h, --help', 'show this help; after a command, the help of the command'],
      ['-v, --version', 'show the version (--json: as JSON)'],
    ]),
    '',
    quiet('Start with: spillway serve. Every setting: docs/operations/settings.md'),
  ].join('\n')
}

/** The help of a word that is no command by itself, as `config`. */
export function helpForGroup(word: string, group: readonly Command[]): string {
  return [
    heading(`spillway ${word} …`),
    '',
    heading('Commands'),
    ...commandRows(group),
    '',
    quiet(`Flags and examples: spillway ${group[0]?.name} --help`),
  ].join('\n')
}

/** `under` are the commands whose names begin with this one's, as "engine fit" for "engine". */
export function helpForCommand(command: Command, under: readonly Command[] = []): string {
  return [
    `${heading(`spillway ${command.name}${command.argument === undefined ? '' : ` ${command.argument}`}`)}: ${command.summary}`,
    '',
    command.about,
    '',
    heading('Flags'),
    ...columns(Object.entries({ ...command.flags, help: HELP_FLAG }).map(flagRow)),
    '',
    heading('Examples'),
    ...command.examples.map((example) => `  ${example}`),
    ...(under.length === 0 ? [] : ['', heading('Commands'), ...commandRows(under)]),
  ].join('\n')
}

const commandRows = (commands: readonly Command[]): string[] =>
  columns(commands.map(({ name, summary }) => [name, summary]))

function flagRow([name, { short, value, meaning }]: [string, Flag]): [string, string] {
  return [`${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`, meaning]
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
