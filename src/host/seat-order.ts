/** What a supervisor tells a new process: which settings to read, and what it finds at its seat. */
export interface SeatOrder {
  readonly number: number
  /** As `--config` gave it; undefined: the environment says, or the demo runs. */
  readonly configPath: string | undefined
  readonly flags: Readonly<Record<string, string | undefined>>
  readonly hasStore: boolean
  readonly hasSharing: boolean
  readonly hasMetricsSocket: boolean
}

/** File descriptors of a new process: after standard input, output, errors and the line. */
export const LISTEN_FD = 4
export const METRICS_FD = 5
