import type { AcceptedSurvivor } from './accepted.ts'
import { type Mutation, OPERATORS, type Operator } from './mutations.ts'

export interface TriedMutant extends Mutation {
  /** The test that failed; undefined when none did. */
  readonly caughtBy: string | undefined
  /** Nearest tests that ran; none when no unit test loads the file. */
  readonly tests: readonly string[]
}

export interface MutantReport {
  readonly seed: number
  readonly mutants: number
  readonly caught: number
  readonly caughtRatio: number
  readonly byOperator: readonly { readonly operator: Operator; readonly mutants: number; readonly caught: number }[]
  readonly survivors: readonly (TriedMutant & { readonly accepted: string | undefined })[]
  readonly stale: readonly { readonly entry: AcceptedSurvivor; readonly because: string }[]
}

interface ReportTerms {
  /** All mutations of the tree, drawn or not. */
  readonly all: readonly Mutation[]
  readonly accepted: readonly AcceptedSurvivor[]
  readonly seed: number
}

export function reportOf(tried: readonly TriedMutant[], { all, accepted, seed }: ReportTerms): MutantReport {
  const caught = tried.filter(({ caughtBy }) => caughtBy !== undefined)
  const survivors = tried.filter(({ caughtBy }) => caughtBy === undefined)
  return {
    seed,
    mutants: tried.length,
    caught: caught.length,
    caughtRatio: tried.length === 0 ? 0 : caught.length / tried.length,
    byOperator: OPERATORS.map((operator) => ({
      operator,
      mutants: tried.filter((mutant) => mutant.operator === operator).length,
      caught: caught.filter((mutant) => mutant.operator === operator).length,
    })),
    survivors: survivors.map((mutant) => ({
      ...mutant,
      accepted: accepted.find((entry) => isOf(entry, mutant))?.reason,
    })),
    stale: accepted.flatMap((entry) => {
      const places = all.filter((mutation) => isOf(entry, mutation))
      if (places.length === 0) return [{ entry, because: 'the line or the change is gone' }]
      const seen = tried.filter((mutant) => isOf(entry, mutant))
      const isCaught = seen.length > 0 && seen.every(({ caughtBy }) => caughtBy !== undefined)
      return isCaught ? [{ entry, because: `caught by ${seen[0]!.caughtBy}` }] : []
    }),
  }
}

function isOf({ file, text, was, now }: AcceptedSurvivor, mutation: Mutation): boolean {
  return mutation.file === file && mutation.text === text && mutation.was === was && mutation.now === now
}

export function printReport(report: MutantReport, brokenTests: readonly string[]): void {
  const percent = (part: number, whole: number): string => (whole === 0 ? '–' : `${Math.round((100 * part) / whole)} %`)
  console.log('| operator | mutants | caught | |\n| --- | --- | --- | --- |')
  for (const { operator, mutants, caught } of report.byOperator)
    console.log(`| ${operator} | ${mutants} | ${caught} | ${percent(caught, mutants)} |`)
  console.log(`| all | ${report.mutants} | ${report.caught} | ${percent(report.caught, report.mutants)} |\n`)
  for (const { file, line, operator, text, was, now, tests, accepted } of report.survivors) {
    console.log(`survived: ${file}:${line} (${operator}): ${oneLine(was)} → ${oneLine(now)}`)
    console.log(`  ${text}`)
    console.log(
      accepted !== undefined ? `  accepted: ${accepted}` : `  tried: ${tests.join(', ') || 'no unit test loads it'}`,
    )
  }
  for (const { entry, because } of report.stale)
    console.log(`stale in bench/mutants/accepted.ts: ${entry.file}: ${entry.text}: ${because}`)
  for (const test of brokenTests) console.log(`left out, for it fails without any change: ${test}`)
}

/** Longer changes are whole statements, of which the beginning says enough. */
const SHOWN_MAX = 60

function oneLine(text: string): string {
  const flat = text.replaceAll(/\s+/g, ' ')
  return flat === '' ? '(nothing)' : flat.length > SHOWN_MAX ? `${flat.slice(0, SHOWN_MAX)}…` : flat
}
