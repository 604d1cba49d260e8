import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { faultsOf, jobLines } from '../support/job-gateway.ts'
import { type SqsServer, startSqs } from '../support/sqs.ts'
import { ACME_KEY, GLOBEX_KEY, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Jobs whose files rest in a bucket, with OpenAI's own client. */
const LINES = 40

describe('files in a bucket', { timeout: 120_000 }, () => {
  let server: SqsServer
  let platform: TestPlatform
  beforeAll(async () => {
    server = await startSqs()
    const bucket = { url: `${server.bucket('files')}/jobs`, accessKeyId: 'test', apiKey: 'test' }
    platform = await startPlatform(testTree({ jobs: { bucket } }))
  }, 60_000)
  afterAll(async () => {
    await platform?.close()
    await server?.close()
  })
  const clientOf = (apiKey: string) => new OpenAI({ baseURL: platform.baseURL, apiKey, maxRetries: 0 })

  it('are uploaded, run, read and removed', async () => {
    const acme = clientOf(ACME_KEY)
    const text = [...jobLines(LINES)].join('\n')
    const file = await acme.files.create({ file: new File([text], 'asked.jsonl'), purpose: 'batch' })
    expect(await (await acme.files.content(file.id)).text()).toBe(text)
    expect(await server.objects('files')).toEqual([`jobs/${file.id}`])
    const { id } = await acme.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    })
    const batch = await eventually('the job ends', async () => {
      const now = await acme.batches.retrieve(id)
      return now.status === 'completed' && now
    })
    const output = await (await acme.files.content(batch.output_file_id ?? '')).text()
    const names = output
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id)
    expect(faultsOf(names, LINES)).toEqual({ missing: [], double: [] })
    await expect(clientOf(GLOBEX_KEY).files.content(file.id)).rejects.toMatchObject({ status: 404 })
    // No file of errors is left where there were none.
    expect(await server.objects('files')).toEqual([`jobs/${file.id}`, `jobs/${batch.output_file_id}`].sort())
    for (const one of [file.id, batch.output_file_id ?? '']) await acme.files.delete(one)
    expect(await server.objects('files')).toEqual([])
  })
})
