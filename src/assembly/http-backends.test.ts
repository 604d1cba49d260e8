import { afterEach, expect, it } from 'vitest'
import { configuredBackend } from '../../test/support/fake-cloud.ts'
import { AWS_TEST_REGION, isSigned } from '../../test/support/fake-sagemaker.ts'
import { FakeUpstream } from '../../test/support/fake-upstream.ts'
import type { PoolSetup } from '../config/to-domain.ts'
import { modelFeatures } from './model-features.ts'

const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }
const closers: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

it('signs with keys that are configured, and with the next secret from the next call on', async () => {
  const upstream = await FakeUpstream.start()
  const verdicts: boolean[] = []
  let good = 'first-secret'
  upstream.guard = async (req, text) => {
    verdicts.push(await isSigned(req, text, { accessKeyId: 'AKIA', secretAccessKey: good }))
    return undefined
  }
  const backend = configuredBackend(upstream.url, {
    engine: 'sagemaker',
    apiKey: good,
    credential: { accessKeyId: 'AKIA', region: AWS_TEST_REGION },
  })
  closers.push(
    () => backend.close(),
    () => upstream.close(),
  )
  await backend.probe(replica)
  good = 'second-secret'
  await backend.probe(replica)
  backend.useKey(good)
  await backend.probe(replica)
  expect(verdicts).toEqual([true, false, true])
})

it('asks one source for all replicas of a pool', async () => {
  const upstream = await FakeUpstream.start()
  closers.push(() => upstream.close())
  const seen = new Set<unknown>()
  upstream.guard = ({ headers }) => {
    seen.add(headers.authorization)
    return undefined
  }
  // Another token each time that it is run.
  const credential = { command: [process.execPath, '-e', 'console.log("token-" + process.pid)'] }
  for (const engine of ['vertex', 'vertex', 'azure-ml']) {
    const backend = configuredBackend(upstream.url, { engine, credential })
    closers.push(() => backend.close())
    await backend.probe(replica)
  }
  expect(seen.size).toBe(1)
})

it('passes nothing through to SageMaker, which has one path', () => {
  const pool = (engine: string) => ({ pool: { model: 'm' }, backend: { kind: 'http-openai', engine } }) as PoolSetup
  expect(modelFeatures('m', [pool('sagemaker')])).toMatchObject({ transit: false, tools: true })
  expect(modelFeatures('m', [pool('vertex')])).toMatchObject({ transit: true })
})
