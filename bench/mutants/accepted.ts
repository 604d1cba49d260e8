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

export const ACCEPTED: readonly AcceptedSurvivor[] = [
  {
    file: 'src/spool/fs-spool.ts',
    text: 'await handle.sync()',
    was: 'await',
    now: ';',
    reason: 'What is not synced is lost only when the machine fails; a test cannot make it fail.',
  },
  {
    file: 'src/policy/sharing/room-targets.ts',
    text: 'whole[i] = (whole[i] ?? 0) + 1',
    was: '0',
    now: '1',
    reason: 'The place is always defined: the default is for the compiler.',
  },
  {
    file: 'src/policy/limits/offline-waste.ts',
    text: 'burstTokens: 1_000_000,',
    was: '1_000_000',
    now: '(1000000 * 1000)',
    reason: 'A tuned default of which tests set their own value; the page of settings states it.',
  },
]
