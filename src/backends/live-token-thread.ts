import { parentPort } from 'node:worker_threads'
import type { AnswerMessage, AskMessage } from '../base/live-asked-thread.ts'
import { type CountedTexts, countTokens } from './count-tokens.ts'
import { loadO200kTokenizer } from './o200k-tokenizer.ts'

/** The tokenizer in a thread of its own: 10 ms for 100 kB of English, 300 ms for as much of the worst text. */
export interface CountWork {
  readonly texts: readonly string[]
  readonly tokensMax: number
  /** The thread gives up after this long, so that one ask does not hold up the next ones. */
  readonly workMsMax: number
}

const port = parentPort
if (port !== null) {
  const tokenizer = await loadO200kTokenizer()
  port.on('message', ({ id, question }: AskMessage<CountWork>) => {
    const { texts, tokensMax, workMsMax } = question
    const endsAt = performance.now() + workMsMax
    const counted = countTokens(tokenizer, texts, { tokensMax, isTimeUp: () => performance.now() >= endsAt })
    port.postMessage({ id, answer: counted } satisfies AnswerMessage<CountedTexts | undefined>)
  })
  port.postMessage('ready')
}
