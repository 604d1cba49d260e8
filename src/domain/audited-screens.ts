import type { ScreenFinding } from './screening.ts'

/** Which screens looked at a request and its answer, which could not, and what they found. */
export interface AuditedScreens {
  readonly run: readonly string[]
  readonly skipped: readonly string[]
  readonly found: readonly ScreenFinding[]
}
