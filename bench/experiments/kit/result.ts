import { join } from 'node:path'

/** What an experiment found, as it is stored: everything that a reader needs to judge or to repeat it. */
export interface Result {
  readonly name: string
  readonly title: string
  readonly about: string
  /** The experiment that found it, where it is stored under another name. */
  readonly script?: string
  readonly command: string
  readonly seeds: readonly number[]
  readonly date: string
  readonly commit: string
  readonly machine: string
  /** How long it took. */
  readonly seconds: number
  readonly tables: readonly Table[]
  readonly verdict: readonly string[]
}

export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: ReadonlyArray<readonly Cell[]>
}

/** Null: not measured, or not published. */
export type Cell = string | number | null

export const RESULTS_FOLDER = join(import.meta.dirname, '../../results')
