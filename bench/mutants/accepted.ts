/**
 * Survivors that are accepted: changes after which the program does the same, as far as anybody outside can see. Each is
 * named by its line as the file has it, so that it is found again when lines above it come and go. `npm run mutants`
 * reports an entry as stale when its line is gone or a test catches it now.
 */
export interface AcceptedSurvivor {
  readonly file: string
  /** The line without indentation. */
  readonly text: string
  readonly was: string
  readonly now: string
  readonly reason: string
}

export const ACCEPTED: readonly AcceptedSurvivor[] = []
