import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { faultsOf, JobGateway, jobLines } from '../support/job-gateway.ts'
import { AWS_ENV, type SqsServer, startSqs } from '../support/sqs.ts'
import { ACME_KEY } from '../support/start-platform.ts'

/** Messages of SQS are lines of jobs, in a gateway that is killed. */
const LINES = 120

describe('a gateway that reads a queue of SQS', { timeout: 240_000 }, () => {
  const folder = new TestFolder()
  let sqs: SqsServer
  let gateway: JobGateway
  beforeAll(async () => {
    sqs = await startSqs()
    const queues = [
      {
        id: 'night',
        url: sqs.queue('asked'),
        // It drops what is sent twice, as happens between the sending and its mark.
        answersUrl: sqs.queue('answered.fifo', { FifoQueue: 'true' }),
        keyHash: hashKey(ACME_KEY),
      },
    ]
    const overrides = { store: { path: `${folder.path}/data` }, jobs: { queues } }
    gateway = new JobGateway(folder, 'one', overrides, AWS_ENV)
  })
  afterAll(async () => {
    await gateway?.end()
    await sqs?.close()
    folder.remove()
  })

  const answered = () => sqs.messages('answered.fifo').texts.map((text) => JSON.parse(text) as Record<string, unknown>)

  it('answers every message once, also when it is killed, and leaves none', async () => {
    for (const line of jobLines(LINES)) sqs.send('asked', line)
    sqs.send('asked', 'no line')
    await gateway.start()
    await eventually('some are answered', () => answered().length >= 20, 60_000)
    await gateway.kill()
    const before = answered().length
    expect(before).toBeLessThan(LINES)
    await sqs.show('asked')
    await gateway.start()
    await eventually('none is left', () => sqs.messages('asked').texts.length === 0, 120_000)
    const told = answered()
    const [bad, ...more] = told.filter((one) => one['custom_id'] === '')
    expect(bad).toMatchObject({ response: null, error: { code: 'invalid_json_line' } })
    expect(more).toEqual([])
    const names = told.filter((one) => one !== bad).map((one) => String(one['custom_id']))
    expect(faultsOf(names, LINES)).toEqual({ missing: [], double: [] })
    expect(told.every((one) => one === bad || (one['response'] as { status_code: number }).status_code === 200)).toBe(
      true,
    )
  })
})
