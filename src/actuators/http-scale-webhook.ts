import type { Clock } from '../base/clock.ts'
import type { Actuator, ScaleAnswer, ScaleOrder } from '../lifecycle/autoscale-ports.ts'
import { answerOfStatus, callAgain, type TryAnswer } from './call-again.ts'
import { callOnce } from './http-call.ts'

/** Orders as JSON to an address of the operator's: `{pool, from, to, leaving, fence, because}`. Any 2xx means done. */
export interface ScaleWebhookOptions {
  readonly clock: Clock
  readonly url: string
  readonly tokenFile: string | undefined
  readonly timeoutMs: number
}

export class ScaleWebhook implements Actuator {
  readonly #options: ScaleWebhookOptions

  constructor(options: ScaleWebhookOptions) {
    this.#options = options
  }

  scale({ poolId: pool, from, to, leaving, fence, because }: ScaleOrder, isOver?: () => boolean): Promise<ScaleAnswer> {
    const { clock, url, tokenFile, timeoutMs } = this.#options
    const body = JSON.stringify({ pool, from, to, leaving, fence: fence?.number ?? null, because })
    const once = async (): Promise<TryAnswer> => {
      const { status } = await callOnce({ url, method: 'POST', timeoutMs, tokenFile, body })
      return answerOfStatus(status, 'the webhook')
    }
    return callAgain(clock, once, isOver)
  }
}
