import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { MODEL, postJson, startPlatform, testTree } from '../support/start-platform.ts'

/** A replica that takes connections and says nothing: no error tells that it is of no use. */

const closing: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** In microseconds, as the journal counts. */
const nowUs = (): number => (performance.timeOrigin + performance.now()) * 1_000

interface Silence {
  readonly fromUs: number
  untilUs: number | undefined
}

async function startSilentServer(): Promise<{ url: string; silences: Silence[] }> {
  const silences: Silence[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const silence: Silence = { fromUs: nowUs(), untilUs: undefined }
    silences.push(silence)
    sockets.add(socket)
    socket.resume()
    socket.on('error', () => {})
    socket.on('close', () => {
      silence.untilUs = nowUs()
      sockets.delete(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, silences }
}

it('ticks go on while a replica is asked and says nothing, and the other pool serves', async () => {
  const { url, silences } = await startSilentServer()
  const platform = await startPlatform(
    testTree({
      models: [{ name: MODEL }, { name: 'mute' }],
      pools: [
        { model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
        { model: 'mute', backend: { kind: 'http-openai', engine: 'vllm' }, replicas: [url] },
      ],
    }),
  )
  closing.push(() => platform.close())
  const ask = (model: string) =>
    postJson(`${platform.baseURL}/chat/completions`, {
      model,
      messages: [{ role: 'user', content: 'Is anybody there?' }],
      max_tokens: 3,
    })
  expect((await ask(MODEL)).status).toBe(200)
  expect((await ask('mute')).status).toBe(503)
  // A probe that is not answered is given up after two seconds; ticks come every second. A tick that waited for the
  // probe would come at its end.
  const hasTickWithin = ({ fromUs, untilUs }: Silence): boolean =>
    untilUs !== undefined &&
    platform.entries.some(
      (entry) =>
        entry.kind === 'pool-reported' &&
        entry.poolId.startsWith(MODEL) &&
        entry.at > fromUs &&
        entry.at < fromUs + (untilUs - fromUs) * 0.75,
    )
  // The start waits for its own probes, so the first one to look at is the second.
  await eventually(
    'a tick came while the silent replica was being asked',
    () => silences.slice(1).some(hasTickWithin),
    30_000,
  )
})
