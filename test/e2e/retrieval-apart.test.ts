import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Running } from '../../src/base/running.ts'
import { runCli } from '../../src/cli/run-cli.ts'
import { buildConfig } from '../../src/config/load.ts'
import { serveRetrieval } from '../../src/main/retrieval-server.ts'
import { startEmbedder } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** Retrieval in a process of its own (here: behind its own port), a gateway that uses it, and the command line. */

const RETRIEVAL_KEY = 'a-secret-of-sixteen-characters'
let apart: Running
let platform: TestPlatform
let embedder: Awaited<ReturnType<typeof startEmbedder>>
const folder = mkdtempSync(join(tmpdir(), 'spillway-docs-'))

beforeAll(async () => {
  embedder = await startEmbedder()
  const retrieval = {
    listenPort: 0,
    apiKey: RETRIEVAL_KEY,
    embedder: { url: embedder.url, model: 'letters', dimensions: 26 },
  }
  const tree = testTree({ store: { path: 'memory:' }, retrieval, logging: { level: 'silent' } })
  const config = buildConfig({ path: 'test.yaml', tree, lineOf: () => undefined }, {})
  apart = await serveRetrieval(config, { out: () => {}, err: () => {} })
  const remote = { url: apart.address, apiKey: RETRIEVAL_KEY, budgetMs: 60_000 }
  platform = await startPlatform(testTree({ retrieval: remote, logging: { level: 'silent' } }))
  // The first question opens the database, which is not what a test here is about.
  expect((await cli('corpus', 'list')).code).toBe(0)
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await apart?.close()
  await embedder?.close()
  rmSync(folder, { recursive: true })
})

async function cli(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const flags = ['--url', platform.address, ...(words.includes('--key') ? [] : ['--key', ACME_KEY])]
  const io = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
  const code = await runCli([...words, ...flags], io)
  return { code, out: out.join('\n'), err: err.join('\n') }
}

describe('the command line, a gateway and retrieval apart', () => {
  it('put documents in, and put them in again', async () => {
    writeFileSync(join(folder, 'pets.md'), '# Pets\nSmall pets may travel in the cabin.')
    writeFileSync(
      join(folder, 'faq.jsonl'),
      '{"name":"q1","text":"Refunds take ten days."}\n{"text":"We open at nine."}\n',
    )
    expect(await cli('corpus', 'list')).toMatchObject({ code: 0, out: expect.stringContaining('No corpus yet') })
    const added = await cli('corpus', 'add', 'handbook', '--from', folder)
    expect(added).toMatchObject({ code: 0, out: '3 documents, 3 passages in handbook' })
    expect((await cli('corpus', 'add', 'handbook', '--from', folder)).out).toBe('3 documents, 3 passages in handbook')
  }, 30_000)

  it('list, search and use them', async () => {
    expect((await cli('corpus', 'list')).out).toContain('handbook')
    const found = await cli('corpus', 'search', 'handbook', '--query', 'refunds', '--json')
    expect(JSON.parse(found.out)[0]).toMatchObject({ filename: 'q1' })
    const response = await postJson(`${platform.baseURL}/chat/completions`, {
      model: MODEL,
      messages: [{ role: 'user', content: 'How long do refunds take?' }],
      max_tokens: 60,
      spillway: { retrieval: { corpus: 'handbook' } },
    })
    expect(response.headers.get('x-spillway-retrieval')).toBe('fresh')
    expect(await response.text()).toContain('ten days')
  }, 30_000)

  it('say plainly what is wrong', async () => {
    expect(await cli('corpus', 'search', 'none', '--query', 'x')).toMatchObject({
      code: 2,
      err: expect.stringContaining("No corpus 'none'"),
    })
    expect(await cli('corpus', 'add', 'handbook', '--from', join(folder, 'absent'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('does not exist'),
    })
    expect(await cli('corpus', 'search', 'handbook')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--query'),
    })
  })

  it('keep tenants apart', async () => {
    expect((await cli('corpus', 'list', '--key', GLOBEX_KEY)).out).toContain('No corpus yet')
    expect((await cli('corpus', 'search', 'handbook', '--query', 'refunds', '--key', GLOBEX_KEY)).code).toBe(2)
    expect((await cli('corpus', 'delete', 'handbook', '--key', GLOBEX_KEY)).code).toBe(2)
  })

  it('let nobody in without the secret', async () => {
    for (const headers of [{}, authorization(), authorization('wrong')] as const) {
      const body = JSON.stringify(['acme', 'handbook'])
      const url = `${apart.address}/internal/corpora/getCorpus`
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      })
      expect(response.status).toBe(401)
    }
    expect((await fetch(`${apart.address}/health/ready`)).status).toBe(200)
    const metrics = `${apart.address}/metrics`
    expect((await fetch(metrics)).status).toBe(401)
    const page = await fetch(metrics, { headers: authorization(RETRIEVAL_KEY) })
    expect(await page.text()).toContain('spillway_documents_indexed_total')
  })

  it('delete', async () => {
    expect((await cli('corpus', 'delete', 'handbook')).code).toBe(0)
    expect((await cli('corpus', 'list')).out).toContain('No corpus yet')
  })
})
