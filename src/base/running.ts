/** Where a command writes: results to `out`, progress and problems to `err`. */
export interface Io {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** A server of ours that runs until `close` is called; `close` resolves when the last answer has ended. */
export interface Running {
  readonly address: string
  close(): Promise<void>
}
