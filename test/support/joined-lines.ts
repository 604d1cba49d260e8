import { CallLine, type LineMessage } from '../../src/base/call-line.ts'
import type { Clock } from '../../src/base/clock.ts'

/** Two ends of a line in one process. Messages are copied, as between processes, and arrive a turn later. */
export function joinedLines(clock: Clock, inFlightMax?: number): [CallLine, CallLine] {
  const ends: CallLine[] = []
  const sendTo = (to: number) => (message: LineMessage) => {
    const copy = structuredClone(message)
    queueMicrotask(() => ends[to]?.take(copy))
  }
  ends.push(new CallLine({ clock, send: sendTo(1), ...(inFlightMax !== undefined && { inFlightMax }) }))
  ends.push(new CallLine({ clock, send: sendTo(0) }))
  return ends as [CallLine, CallLine]
}
