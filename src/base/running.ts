/** Where a long-running command says things: results to `out`, everything about them to `err`. */
export interface Io {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** Something that runs until it is told to stop. */
export interface Running {
  readonly address: string
  close(): Promise<void>
}
