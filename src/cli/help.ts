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
    ...columns(commands.map((command) => [command.name, command.summary])),
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

export function helpForCommand(command: Command): string {
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
  ].join('\n')
}

function flagRow([name, { short, value, meaning }]: [string, Flag]): [string, string] {
  return [`${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`, meaning]
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
