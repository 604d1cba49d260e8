import { parentPort } from 'node:worker_threads'
import { type CountedTexts, countTokens } from './count-tokens.ts'
import { loadO200kTokenizer } from './o200k-tokenizer.ts'

/** The tokenizer in a thread of its own: 10 ms for 100 kB of English, 300 ms for as much of the worst text. */
export interface CountAsk {
  readonly id: number
  readonly texts: readonly string[]
  readonly tokensMax: number
  /** The thread gives up after this long, so that one ask does not hold up the next ones. */
  readonly workMsMax: number
}

export interface CountAnswer {
  readonly id: number
  /** Undefined when the thread gave up. */
  readonly counted: CountedTexts | undefined
}

const port = parentPort
if (port !== null) {
  const tokenizer = await loadO200kTokenizer()
  port.on('message', ({ id, texts, tokensMax, workMsMax }: CountAsk) => {
    const endsAt = performance.now() + workMsMax
    const counted = countTokens(tokenizer, texts, { tokensMax, isTimeUp: () => performance.now() >= endsAt })
    port.postMessage({ id, counted } satisfies CountAnswer)
  })
  port.postMessage('ready')
}
