import type { LinePlace } from '../domain/job.ts'
import type { FileBytes } from '../lifecycle/job-ports.ts'

/** Neighbours are read together, up to this many bytes. */
const SPAN_BYTES_MAX = 1_048_576

/** The texts of lines that are in the order of their file, with few reads. */
export async function readLines(files: FileBytes, fileId: string, lines: readonly LinePlace[]): Promise<string[]> {
  const texts: string[] = []
  const decoder = new TextDecoder()
  for (let i = 0; i < lines.length; ) {
    const first = lines[i] as LinePlace
    let end = first.at + first.length
    let next = i + 1
    for (let line = lines[next]; line !== undefined; line = lines[++next]) {
      if (line.at + line.length - first.at > SPAN_BYTES_MAX) break
      end = line.at + line.length
    }
    const bytes = await files.read(fileId, first.at, end - first.at)
    for (const { at, length } of lines.slice(i, next))
      texts.push(decoder.decode(bytes.subarray(at - first.at, at - first.at + length)))
    i = next
  }
  return texts
}
