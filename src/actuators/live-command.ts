import { spawn } from 'node:child_process'
import type { Clock } from '../base/clock.ts'
import type { Actuator, ScaleAnswer, ScaleOrder } from '../lifecycle/autoscale-ports.ts'
import { callAgain, type TryAnswer } from './call-again.ts'

/**
 * Orders by a program of the operator's, run without a shell: the order is in its environment, and it must have brought the
 * pool to the number when it ends with 0. It is ended when its time is over. What it says on its error output is in the
 * journal when it fails, up to a bound.
 */
export interface CommandOptions {
  readonly clock: Clock
  readonly command: readonly string[]
  readonly timeoutMs: number
}

/** A program that does not end when asked to is ended. */
const GRACE_MS = 2_000
const SAID_CHARS_MAX = 500

export class ScaleCommand implements Actuator {
  readonly #options: CommandOptions

  constructor(options: CommandOptions) {
    this.#options = options
  }

  scale(order: ScaleOrder, isOver?: () => boolean): Promise<ScaleAnswer> {
    return callAgain(this.#options.clock, () => this.#run(order), isOver)
  }

  #run({ poolId, from, to, leaving, fence, because }: ScaleOrder): Promise<TryAnswer> {
    const { command, timeoutMs } = this.#options
    const [program = '', ...args] = command
    return new Promise((resolve) => {
      const child = spawn(program, args, {
        stdio: ['ignore', 'ignore', 'pipe'],
        timeout: timeoutMs,
        env: {
          ...process.env,
          SPILLWAY_POOL: poolId,
          SPILLWAY_REPLICAS_FROM: String(from),
          SPILLWAY_REPLICAS_TO: String(to),
          SPILLWAY_LEAVING: leaving.join('\n'),
          SPILLWAY_FENCE: fence === undefined ? '' : String(fence.number),
          SPILLWAY_BECAUSE: because,
        },
      })
      const killer = setTimeout(() => child.kill('SIGKILL'), timeoutMs + GRACE_MS)
      let said = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = `${said}${text}`.slice(-SAID_CHARS_MAX)
      })
      const end = (answer: TryAnswer): void => {
        clearTimeout(killer)
        // What the program has left running may hold the pipe open.
        child.stderr.destroy()
        resolve(answer)
      }
      child.once('error', (error) => end({ kind: 'failed', because: `the command cannot be run: ${error.message}` }))
      child.once('exit', (code, signal) => {
        if (code === 0) return end({ kind: 'done' })
        const how = code === null ? `was ended by ${signal ?? 'a signal'}` : `ended with ${code}`
        end({ kind: 'unlucky', because: `the command ${how}${said === '' ? '' : `: ${said.trim()}`}` })
      })
    })
  }
}
