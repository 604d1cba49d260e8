import { parentPort } from 'node:worker_threads'
import type { AnswerMessage, AskMessage } from '../../base/live-asked-thread.ts'
import type { EntitySpan } from '../../domain/screening.ts'
import { loadNameTagger } from './fs-name-tagger.ts'

/** The tagger in a thread of its own: half a millisecond for 1 kB. */
const port = parentPort
if (port !== null) {
  const tagger = loadNameTagger()
  port.on('message', ({ id, question }: AskMessage<string>) => {
    port.postMessage({ id, answer: tagger.find(question) } satisfies AnswerMessage<readonly EntitySpan[]>)
  })
  port.postMessage('ready')
}
