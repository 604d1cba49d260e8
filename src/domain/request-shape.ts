import type { RequestKind } from './request.ts'

/** What a request asks for beside its text, for recordings of a workload. */
export interface RequestShape {
  readonly kind: RequestKind
  readonly bid: number
  readonly outputTokensMax: number | undefined
  readonly choiceCount: number
  readonly prefixHashes: readonly number[]
  readonly sessionHash: number | undefined
  /** Passages that the client wants; 0 without retrieval. */
  readonly passagesMax: number
}
