import { afterAll, beforeAll, expect, it } from 'vitest'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { startEmbedder } from '../support/servers.ts'
import { authorization, testTree } from '../support/start-platform.ts'

/**
 * kill -9 while documents are being indexed: the next process goes on where the last one was, and nothing is there twice.
 * While a process lives, another one on the same folder is told who has it, and serves on without corpora.
 */
const folder = new TestFolder()
const children: Child[] = []
let embedder: Awaited<ReturnType<typeof startEmbedder>>

beforeAll(async () => {
  embedder = await startEmbedder()
})
afterAll(async () => {
  for (const child of children) await child.end()
  await embedder?.close()
  folder.remove()
})

async function start(): Promise<{ child: Child; address: string }> {
  const store = { path: `${folder.path}/store` }
  const retrieval = { embedder: { url: embedder.url, model: 'letters', dimensions: 26 } }
  const config = folder.write('spillway.yaml', testTree({ store, retrieval }))
  const child = new Child({ env: { SPILLWAY_CONFIG: config } })
  children.push(child)
  return { child, address: await child.address(60_000) }
}

async function call(address: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${address}/v1${path}`, {
    method,
    headers: { ...authorization(), 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return response.json()
}

interface Counts {
  readonly completed: number
  readonly total: number
}
const DOCUMENTS = 40

it('indexing goes on after kill -9, and a folder has one owner', { timeout: 240_000 }, async () => {
  const first = await start()
  await call(first.address, 'POST', '/vector_stores', { name: 'pumps' })
  const documents = Array.from({ length: DOCUMENTS }, (_, i) => ({
    name: `d${i}`,
    text: Array.from(
      { length: 12 },
      (__, n) => `# ${n}\nPump number ${i} of hall ${n} runs at ${i * 100 + n} bar.`,
    ).join('\n\n'),
  }))
  await call(first.address, 'POST', '/vector_stores/pumps/documents', { documents })

  const second = await start()
  const refused = await eventually('the second is told', async () => {
    const answer = (await call(second.address, 'GET', '/vector_stores')) as { error?: { message: string } }
    return answer.error?.message
  })
  // The client is told that the store is away; the operator is told who has it, and where.
  expect(refused).toContain('could not be opened')
  expect(refused).not.toContain(folder.path)
  await eventually('the operator is told', () =>
    second.child.err.includes(`${folder.path}/store is in use by process ${first.child.process.pid}`),
  )
  expect((await fetch(`${second.address}/health`)).ok).toBe(true)
  await second.child.end()

  const countsOf = async (address: string): Promise<Counts> =>
    ((await call(address, 'GET', '/vector_stores/pumps')) as { file_counts: Counts }).file_counts
  await eventually('some are indexed', async () => (await countsOf(first.address)).completed >= 1, 60_000)
  first.child.signal('SIGKILL')
  await first.child.exited()

  const third = await start()
  await eventually('all are indexed', async () => (await countsOf(third.address)).completed === DOCUMENTS, 120_000)
  expect((await countsOf(third.address)).total).toBe(DOCUMENTS)
  const found = (await call(third.address, 'POST', '/vector_stores/pumps/search', {
    query: 'Pump number 39 of hall 11',
    max_num_results: 50,
  })) as { data: Array<{ filename: string; content: Array<{ text: string }> }> }
  const texts = found.data.map(({ content }) => content[0]!.text)
  expect(found.data[0]?.filename).toBe('d39')
  expect(new Set(texts).size).toBe(texts.length)
})
