import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { hashKey } from '../../src/config/key-hash.ts'
import { pause } from '../../test/support/eventually.ts'
import { FakeUpstream } from '../../test/support/fake-upstream.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  startPlatform,
  testTree,
} from '../../test/support/start-platform.ts'

/**
 * What does a guard model of 50 ms add to the first token over real sockets, behind 100 ms that pass anyway? Two
 * gateways in one process, one with the guard and one without, asked in turns; medians and the difference of each pair.
 *
 *   node bench/load/guard-wait.ts [PAIRS]
 */
const PAIRS = Number(process.argv[2] ?? 100)
const GUARD_MS = 50
const ENGINE_MS = 100

const guard = spawn(process.execPath, [
  join(import.meta.dirname, '../../test/support/guard-process.ts'),
  '0',
  `${GUARD_MS}`,
])
const [said] = (await once(guard.stdout, 'data')) as [Buffer]
const guardUrl = `http://127.0.0.1:${/(\d+)/.exec(String(said))?.[1]}/v1`
const limit = { kind: 'fixed', concurrencyMax: 64 }

/** An engine that reads the prompt for 100 ms, then streams one word. */
const upstream = await FakeUpstream.start(async ({ res }) => {
  await pause(ENGINE_MS)
  const choices = [{ index: 0, delta: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }]
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.end(
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\ndata: [DONE]\n\n`,
  )
})

const treeOf = (screening: object, seats: number) =>
  testTree({
    models: [{ name: MODEL }, { name: 'guard' }],
    pools: [
      {
        model: MODEL,
        backend: { kind: 'http-openai' },
        replicas: [upstream.url],
        limit: { kind: 'fixed', concurrencyMax: seats },
        inside: true,
      },
      { model: 'guard', backend: { kind: 'http-openai' }, replicas: [guardUrl], limit, dedicatedTo: ['spillway'] },
    ],
    screening,
    tenants: [
      { id: 'acme', slo: 'patient', keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
      // Whoever has the seat is not judged, so that the wait is the same on both sides.
      {
        id: 'globex',
        slo: 'patient',
        keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }],
        screening: { input: { injection: 'off', guard: 'off' } },
      },
    ],
  })

const screeningWith = (joined: 'gate' | 'overlap') => ({
  input: { injection: 'block', guard: 'block' },
  join: joined,
  guardModel: { model: 'guard', greyFrom: 0, greyTo: 1, timeoutMs: 1_000 },
})

async function ttftMs(baseURL: string, key = ACME_KEY): Promise<number> {
  const startedAt = performance.now()
  const body = { model: MODEL, stream: true, messages: [{ role: 'user', content: 'How high is the weir?' }] }
  const headers = { 'content-type': 'application/json', ...authorization(key) }
  const answer = await fetch(`${baseURL}/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) })
  const reader = answer.body?.getReader()
  await reader?.read()
  const ms = performance.now() - startedAt
  while ((await reader?.read())?.done === false);
  if (answer.status !== 200) throw new Error(`answered ${answer.status}`)
  return ms
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

async function compare(what: string, joined: 'gate' | 'overlap', seats: number, isQueued: boolean): Promise<void> {
  const plain = await startPlatform(treeOf({}, seats))
  const judged = await startPlatform(treeOf(screeningWith(joined), seats))
  const once = async (baseURL: string): Promise<number> => {
    // Somebody else's request is at the only seat.
    const before = isQueued ? ttftMs(baseURL, GLOBEX_KEY) : undefined
    if (isQueued) await pause(1)
    const ms = await ttftMs(baseURL)
    await before
    return ms
  }
  for (let i = 0; i < 5; i++) for (const { baseURL } of [plain, judged]) await once(baseURL)
  const without: number[] = []
  const within: number[] = []
  for (let i = 0; i < PAIRS; i++) {
    without.push(await once(plain.baseURL))
    within.push(await once(judged.baseURL))
  }
  const added = median(within.map((ms, i) => ms - (without[i] as number)))
  process.stdout.write(
    `${what}: first token p50 ${median(without).toFixed(1)} ms without, ${median(within).toFixed(1)} ms with the guard; ` +
      `added, median of pairs, ${added.toFixed(2)} ms\n`,
  )
  await plain.close()
  await judged.close()
}

process.stdout.write(`a guard of ${GUARD_MS} ms, an engine of ${ENGINE_MS} ms, ${PAIRS} pairs\n`)
await compare('overlap, behind the prefill', 'overlap', 64, false)
await compare('gate, without a wait', 'gate', 64, false)
await compare('gate, behind another’s turn', 'gate', 1, true)
await upstream.close()
guard.kill()
