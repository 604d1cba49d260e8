import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { metricOf, postJson, SpillwayProcess } from '../support/engine-process.ts'

/** `spillway serve` before two `spillway engine`s, each a process of its own. */

const MODEL = 'meta-llama/Llama-3.1-8B-Instruct'
const MESSAGES = [{ role: 'user', content: 'A spillway lets water pass a dam. It is sized for the largest flood.' }]

const started: SpillwayProcess[] = []
const start = async (...words: string[]): Promise<SpillwayProcess> => {
  const one = await SpillwayProcess.start('engine', '--profile', 'h100-llama-8b', '--model', MODEL, ...words)
  started.push(one)
  return one
}
afterAll(async () => {
  await Promise.all(started.splice(0).map((one) => one.stop()))
})

let engines: readonly SpillwayProcess[]
// Before the test, and one hook after the other: on a busy machine each takes longer than the test.
beforeAll(async () => {
  engines = await Promise.all([start(), start()])
})

describe('the gateway before two engine servers', () => {
  let gateway: SpillwayProcess
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-gateway-'))
    const file = join(folder, 'gateway.yaml')
    writeFileSync(
      file,
      JSON.stringify({
        models: [{ name: 'llama' }],
        pools: [
          {
            model: 'llama',
            backend: { kind: 'http-openai', upstreamModel: MODEL },
            replicas: engines.map(({ url }) => `${url}/v1`),
          },
        ],
        tenants: [{ id: 'acme', slo: 'patient', keys: [{ id: 'k', hash: hashKey('sk-test') }] }],
      }),
    )
    gateway = await SpillwayProcess.start('serve', '--config', file)
    started.push(gateway)
    rmSync(folder, { recursive: true })
  })

  it('goes on with one when the other is killed', async () => {
    const ask = async (i: number): Promise<string> => {
      const response = await postJson(
        `${gateway.url}/v1/chat/completions`,
        { model: 'llama', messages: MESSAGES, max_tokens: 20, seed: i, stream: i % 2 === 0 },
        { headers: { authorization: 'Bearer sk-test' } },
      )
      const text = await response.text()
      expect([response.status, /"error":.*/.exec(text)?.[0]]).toEqual([200, undefined])
      return text
    }
    await Promise.all(Array.from({ length: 12 }, (_, i) => ask(i)))
    const served = async (engine: SpillwayProcess) => (await metricOf(engine.url, 'request_params_n_count')) ?? 0
    const [first, second] = await Promise.all(engines.map(served))
    expect(Math.min(first!, second!)).toBeGreaterThan(0)
    expect(first! + second!).toBe(12)
    await engines[0]!.stop('SIGKILL')
    for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 8 }, (_, i) => ask(i)))
    expect(await served(engines[1]!)).toBe(second! + 24)
  })
})
