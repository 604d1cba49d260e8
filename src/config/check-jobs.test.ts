import { describe, expect, it } from 'vitest'
import { buildConfig } from './load.ts'
import { redacted } from './redact.ts'
import type { Config } from './schema.ts'

const config = (jobs: object, env: Record<string, string> = {}): Config =>
  buildConfig({ path: 'test.yaml', tree: { tenants: [{ id: 'a', keys: [] }], jobs }, lineOf: () => undefined }, env)

const queue = (id: string, more: object = {}) => ({
  id,
  url: `https://sqs.eu-central-1.amazonaws.com/1/${id}`,
  answersUrl: `https://sqs.eu-central-1.amazonaws.com/1/${id}-answers`,
  keyHash: `sha256:${'0'.repeat(64)}`,
  ...more,
})

describe('the bucket', () => {
  const url = 'https://files.s3.eu-central-1.amazonaws.com/jobs'
  it.each<[string, object, string]>([
    ['half a credential', { url, accessKeyId: 'A' }, 'half a credential'],
    ['two secrets', { url, accessKeyId: 'A', apiKey: 'x', apiKeyEnv: 'S' }, 'Keep one of them'],
    ['an unknown variable', { url, accessKeyId: 'A', apiKeyEnv: 'NO_SUCH_VARIABLE' }, 'no such variable is set'],
  ])('is refused with a reason: %s', (_, bucket, says) => {
    expect(() => config({ bucket })).toThrow(says)
  })

  it('has its secret from the environment, which is not printed', () => {
    const made = config(
      { bucket: { url, accessKeyId: 'A', apiKeyEnv: 'BUCKET_SECRET' } },
      { BUCKET_SECRET: 'hush-hush' },
    )
    expect(made.jobs.bucket).toMatchObject({ region: 'us-east-1', apiKey: 'hush-hush' })
    expect(JSON.stringify(redacted(made))).not.toContain('hush-hush')
  })
})

describe('queues', () => {
  it('have bounds of their own', () => {
    const [one] = config({ queues: [queue('a')] }).jobs.queues
    expect(one).toMatchObject({ id: 'a', runningMax: 64, receivesMax: 5, windowMinutes: 60 })
    expect(JSON.stringify(redacted(config({ queues: [queue('a')] })))).not.toContain('0'.repeat(64))
  })

  it.each<[string, object[], string]>([
    ['two of one name', [queue('a'), queue('a', { url: 'https://x/1' })], 'has the name of another queue (a)'],
    ['one address twice', [queue('a'), queue('b', { url: queue('a').url })], 'reads what another queue reads'],
    ['answers that are read', [queue('a'), queue('b', { answersUrl: queue('a').url })], 'answers would be run'],
    ['its own answers', [queue('a', { answersUrl: queue('a').url })], 'answers would be run'],
    ['a secret in place of its hash', [queue('a', { keyHash: 'sk-sw-1' })], 'keyHash'],
    ['no key', [queue('a', { keyHash: undefined })], 'keyHash'],
  ])('are refused with a reason: %s', (_, queues, says) => {
    expect(() => config({ queues })).toThrow(says)
  })
})
