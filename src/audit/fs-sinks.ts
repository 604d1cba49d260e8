import { promises as fs } from 'node:fs'
import type { CheckpointSink } from './sink-queue.ts'

/** Appends each checkpoint to a file, on another disk than the audit. */
export function fileSink(path: string): CheckpointSink {
  return {
    name: 'file',
    async send(note) {
      const file = await fs.open(path, 'a', 0o600)
      try {
        await file.write(note)
        await file.datasync()
      } finally {
        await file.close()
      }
    },
  }
}
