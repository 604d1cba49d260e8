import { promises as fs } from 'node:fs'
import { join } from 'node:path'

/**
 * Erasures that all processes of a host are to carry out, each in its own chain's folder: a file for each subject, by its
 * tag. A process looks every few seconds; a file that is old has been seen by all.
 */
const KEEP_MS = 3_600_000
const HANDLED_MAX = 10_000

export class EraseRequests {
  readonly #folder: string
  readonly #nowMs: () => number
  readonly #handled = new Set<string>()

  constructor(path: string, nowMs: () => number) {
    this.#folder = join(path, 'erase')
    this.#nowMs = nowMs
  }

  /** Asks the others; this process has done it itself. */
  async ask(tag: string): Promise<void> {
    await fs.mkdir(this.#folder, { recursive: true, mode: 0o700 })
    this.#handled.add(tag)
    await fs.writeFile(join(this.#folder, tag), '', { mode: 0o600 })
  }

  /** Carries out what others have asked since the last time. */
  async carryOut(erase: (tag: string) => Promise<unknown>): Promise<void> {
    for (const tag of await fs.readdir(this.#folder).catch(() => [])) {
      if (!this.#handled.has(tag)) await erase(tag)
      if (this.#handled.size >= HANDLED_MAX) this.#handled.clear()
      this.#handled.add(tag)
      const path = join(this.#folder, tag)
      const { mtimeMs } = await fs.stat(path)
      if (this.#nowMs() - mtimeMs > KEEP_MS) await fs.unlink(path)
    }
  }
}
