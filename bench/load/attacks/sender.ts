/** The thread that sends an attack: it shares no event loop with the one that measures `/health`. */
import { Agent, request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import { ATTACKS, type Attack } from './attacks.ts'

const { url, name, durationMs } = workerData as { url: string; name: string; durationMs: number }
const attack = ATTACKS.find((one) => one.name === name) as Attack
const body = attack.makeBody()
const endsAt = performance.now() + durationMs
const agent = new Agent({ keepAlive: attack.isHeld !== true, maxSockets: attack.connections })
const counts: Record<string, number> = {}
let wrongKeys = 0

function sendOne(): Promise<string> {
  return new Promise((resolve) => {
    const headers: Record<string, string | number> = {
      'content-type': attack.contentType ?? 'application/json',
      authorization: `Bearer ${attack.key ?? `sk-wrong-${++wrongKeys}`}`,
      ...(attack.isChunked !== true && { 'content-length': body.length }),
    }
    const sent = request(url + attack.path, { method: 'POST', headers, agent }, (res) => {
      res.resume()
      res.on('end', () => resolve(String(res.statusCode)))
      res.on('error', () => resolve('closed'))
    })
    sent.on('error', () => resolve('closed'))
    if (attack.isHeld === true) {
      sent.write(body.subarray(0, -1))
      setTimeout(() => sent.destroy(), Math.max(0, endsAt - performance.now()))
    } else sent.end(body)
  })
}

async function keepSending(): Promise<void> {
  while (performance.now() < endsAt) {
    const outcome = await sendOne()
    counts[outcome] = (counts[outcome] ?? 0) + 1
    // A sender that is told to come back later does so here at once, but lets the others have the thread.
    if (outcome !== '200') await new Promise((resolve) => setImmediate(resolve))
  }
}

await Promise.all(Array.from({ length: attack.connections }, keepSending))
agent.destroy()
parentPort?.postMessage(counts)
