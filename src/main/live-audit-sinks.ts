import { fileSink } from '../audit/fs-sinks.ts'
import type { FsWitness } from '../audit/fs-witness.ts'
import { bucketSink, httpSink } from '../audit/http-sinks.ts'
import type { CheckpointSink } from '../audit/sink-queue.ts'
import { isOk, post } from '../backends/http-get.ts'
import { HttpUpstream } from '../backends/http-upstream.ts'
import { type Clock, usToMs } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { peerUrls } from '../config/schema-regions.ts'
import { readWitnessAnswer, WITNESS_PATH } from '../wire/region.ts'

/** The places outside that get this audit's checkpoints, as the settings name them. */
export interface SinkWorld {
  readonly clock: Clock
  readonly print: (line: string) => void
  /** Settings in force: peers may change. */
  readonly settings: () => Config
  readonly witness: FsWitness | undefined
}

const WITNESS_MS = 5_000

export function makeSinks({ audit }: Config, world: SinkWorld): CheckpointSink[] {
  const sinks = audit.sinks.map((sink) => makeSink(sink, world))
  const { witness } = world
  return witness === undefined ? sinks : [...sinks, peersSink(world.settings, witness)]
}

function makeSink(sink: Config['audit']['sinks'][number], { clock, print }: SinkWorld): CheckpointSink {
  const { kind, url = '', path = '', region = 'us-east-1', accessKeyId, apiKey } = sink
  if (kind === 'file') return fileSink(path)
  if (kind === 'stdout') return printSink(print)
  if (kind === 'http') return httpSink(url, apiKey)
  const isSigned = accessKeyId !== undefined && apiKey !== undefined
  const credential = isSigned ? { accessKeyId, secretKey: apiKey } : undefined
  return bucketSink({ url, region, credential, now: () => new Date(usToMs(clock.now())) })
}

const printSink = (print: (line: string) => void): CheckpointSink => ({
  name: 'stdout',
  send(note) {
    print(JSON.stringify({ audit_checkpoint: note }))
    return Promise.resolve()
  },
})

/** Gives the checkpoint to the gateways of all other regions, and keeps theirs. */
function peersSink(settings: () => Config, witness: FsWitness): CheckpointSink {
  return {
    name: 'peers',
    async send(note) {
      const away: string[] = []
      for (const peer of settings().regions.peers) {
        // Every gateway of a region keeps what it is given; one of them that has it is enough.
        const urls = peerUrls(peer)
        const answers = await Promise.all(urls.map((url) => tellPeer(url, peer.apiKey, note)))
        const taken = answers.filter((answer) => answer !== undefined)
        if (taken.length === 0) away.push(peer.region)
        for (const answer of taken) await witness.take(answer)
      }
      if (away.length > 0) throw new Error(`${away.join(', ')} did not take it`)
    },
  }
}

async function tellPeer(url: string, apiKey: string | undefined, note: string): Promise<readonly string[] | undefined> {
  const upstream = new HttpUpstream({ url, apiKey, connectionsMax: 1 })
  try {
    const path = `${new URL(url).pathname.replace(/(\/v1)?\/*$/, '')}${WITNESS_PATH}`
    const got = await post(upstream, path, JSON.stringify({ notes: [note] }), WITNESS_MS)
    return isOk(got) ? readWitnessAnswer(got.text) : undefined
  } finally {
    await upstream.close()
  }
}
