import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { RecordingFile } from '../telemetry/live-recording-file.ts'
import type { LiveTelemetry } from '../telemetry/live-telemetry.ts'

/** The recording that the configuration asks for; nothing where `record.path` is absent. */
export function startFileRecording(
  { path, fileBytesMax, filesMax }: Config['record'],
  parts: {
    readonly telemetry: Pick<LiveTelemetry, 'record'>
    readonly clock: Clock
    readonly complain: (text: string) => void
  },
): { close(): Promise<void> } {
  if (path === undefined) return { close: () => Promise.resolve() }
  const file = new RecordingFile({ path, fileBytesMax, filesMax, onTrouble: parts.complain })
  const stop = parts.telemetry.record(file, parts.clock.now())
  return {
    async close() {
      stop?.()
      await file.close()
    },
  }
}
