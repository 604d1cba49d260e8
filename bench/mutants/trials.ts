import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Trial, TrialResult } from './trial-process.ts'

/** Tries mutants one after the other in a process of its own, which is replaced when it ends or hangs. */

/** MiB. A mutant that fills the memory ends its process, not the machine. */
const HEAP_MIB = 1_024
/** Milliseconds. A test that waits for nothing ends by its own limit before; a busy machine is slow. */
const HUNG_MS = 120_000

/** What failed when the process took too long, or died of the mutant. */
export const PROCESS_ENDED = 'the process ended'

export class Trials {
  readonly #root: string
  #child: ChildProcess | undefined

  constructor(root: string) {
    this.#root = root
  }

  async try(trial: Trial): Promise<TrialResult> {
    const child = await this.#started()
    const ended = new Promise<TrialResult>((resolve) => {
      const hung = setTimeout(() => child.kill('SIGKILL'), HUNG_MS)
      const onExit = (): void => {
        clearTimeout(hung)
        this.#child = undefined
        resolve({ failed: PROCESS_ENDED })
      }
      child.once('exit', onExit)
      child.once('message', (result) => {
        clearTimeout(hung)
        child.off('exit', onExit)
        resolve(result as TrialResult)
      })
    })
    child.send(trial)
    return ended
  }

  async close(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    const exited = once(child, 'exit')
    child.kill()
    await exited
  }

  async #started(): Promise<ChildProcess> {
    if (this.#child !== undefined) return this.#child
    const child = fork(join(import.meta.dirname, 'trial-process.ts'), {
      cwd: this.#root,
      execArgv: [`--max-old-space-size=${HEAP_MIB}`],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    this.#child = child
    const failed = once(child, 'exit').then(() => {
      throw new Error('vitest did not start: run bench/mutants/trial-process.ts by hand')
    })
    // It also ends later, when nobody waits for its start any more.
    failed.catch(() => undefined)
    await Promise.race([once(child, 'message'), failed])
    return child
  }
}
