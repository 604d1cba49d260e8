import type { ParseArgsConfig } from 'node:util'
import type { Io } from '../base/running.ts'

export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

export interface Flag {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** The word that stands for the value in the help, as in `--port NUMBER`. */
  readonly value?: string
  readonly meaning: string
  /** The flag may be repeated; its value is then a list. */
  readonly multiple?: boolean
}

/** A command is one file that exports a `Command`, and one row in `commands.ts`. */
export interface Command {
  /** As typed, words separated by one space. */
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** A paragraph for the command's own help. */
  readonly about: string
  /** The word that stands for the command's one argument, as SCENARIO; its value is the flag `argument`. */
  readonly argument?: string
  readonly flags: Readonly<Record<string, Flag>>
  readonly examples: readonly string[]
  /** Returns the exit code. May throw `UsageError` and `ConfigError`, which become one clear line each. */
  run(flags: FlagValues, io: Io): number | Promise<number>
}

/** A mistake in the typed command: one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A refusal by the server, with its reason: one line, exit code 1. */
export class AdminRefused extends Error {
  override readonly name = 'AdminRefused'
}

export const CONFIG_FLAG: Flag = {
  type: 'string',
  short: 'c',
  value: 'FILE',
  meaning: 'YAML file with the settings (or set SPILLWAY_CONFIG)',
}

export const JSON_FLAG: Flag = { type: 'boolean', meaning: 'print JSON for machines' }

export const REPORT_FLAG: Flag = {
  type: 'string',
  value: 'DIR',
  meaning: 'write report.html, one page with plots, and report.json into this folder',
}

export const HELP_FLAG: Flag = { type: 'boolean', short: 'h', meaning: 'show this help' }

export function parseArgsOptions(command: Command): NonNullable<ParseArgsConfig['options']> {
  const flags = Object.entries({ ...command.flags, help: HELP_FLAG })
  return Object.fromEntries(
    flags.map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short && { short }), ...(multiple === true && { multiple }) },
    ]),
  )
}

export const textFlag = (flags: FlagValues, name: string): string | undefined => {
  const value = flags[name]
  return typeof value === 'string' ? value : undefined
}

/** The value of a flag that takes one of a few words. */
export function choiceFlag<const T extends string>(
  flags: FlagValues,
  name: string,
  choices: readonly T[],
): T | undefined {
  const text = textFlag(flags, name)
  if (text === undefined) return undefined
  const chosen = choices.find((choice) => choice === text)
  if (chosen !== undefined) return chosen
  throw new UsageError(`--${name} is "${text}". Give one of: ${choices.join(', ')}.`)
}

/** The value of a flag that takes a number within bounds; anything else is a `UsageError`. */
export function numberFlag(flags: FlagValues, name: string, bounds: NumberBounds = {}): number | undefined {
  const text = textFlag(flags, name)
  if (text === undefined) return undefined
  const { min = Number.NEGATIVE_INFINITY, above = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = bounds
  const value = text.trim() === '' ? Number.NaN : Number(text)
  const isIn = value >= min && value > above && value <= max
  if (isIn && (bounds.isWhole !== true || Number.isInteger(value))) return value
  const wanted = [
    Number.isFinite(min) ? ` from ${min}` : '',
    Number.isFinite(above) ? ` above ${above}` : '',
    Number.isFinite(max) ? `${Number.isFinite(min) ? '' : ' up'} to ${max}` : '',
  ]
  throw new UsageError(
    `--${name} is "${text}". Give a ${bounds.isWhole === true ? 'whole ' : ''}number${wanted.join('')}.`,
  )
}

export interface NumberBounds {
  readonly min?: number
  readonly above?: number
  readonly max?: number
  readonly isWhole?: boolean
}

/** One object on one line. A field without a value is null, not left out, so that every name is there. */
export function wholeJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (each === undefined ? null : each))
}
