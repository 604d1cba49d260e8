import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AWS_CREDENTIAL, AWS_REGION, awsError, SagemakerServer } from '../../test/support/sagemaker-server.ts'
import { json, type Reply, text } from '../../test/support/scripted-server.ts'
import { SagemakerRegistry } from './http-sagemaker.ts'

let server: SagemakerServer
beforeEach(async () => {
  server = await SagemakerServer.start()
})
afterEach(() => server.close())

const registryOf = (more: object = {}) =>
  new SagemakerRegistry({
    url: server.url,
    region: AWS_REGION,
    credential: AWS_CREDENTIAL,
    now: () => new Date(),
    pausesMs: [1, 1],
    timeoutMs: 15_000,
    ...more,
  })

const package_ = (ModelPackageVersion: number, more: object = {}) => ({ ModelPackageVersion, ...more })

describe('a model package group', () => {
  it('has its versions page by page, and only those that can be served are described', async () => {
    server.packages = [
      package_(5, { ModelPackageStatus: 'InProgress' }),
      package_(4, { ModelApprovalStatus: 'PendingManualApproval' }),
      package_(3, { Containers: [{ Image: 'x' }, { ModelDataUrl: 's3://w/3.tar.gz' }] }),
      package_(2, {
        ModelLifeCycle: { Stage: 'Production', StageStatus: 'Approved' },
        Containers: [{ ModelDataSource: { S3DataSource: { S3Uri: 's3://w/2/' } } }],
      }),
      package_(1, {
        ModelLifeCycle: { Stage: 'Production', StageStatus: 'PendingApproval' },
        SourceUri: 'arn:aws:sagemaker:x',
      }),
    ]
    const answer = await registryOf().versions('llama')
    expect(answer).toMatchObject({
      kind: 'found',
      items: [
        { version: '5', status: 'InProgress' },
        { version: '4', status: 'PendingManualApproval' },
        { version: '3', status: 'READY', stage: '', artifact: 's3://w/3.tar.gz', createdAtMs: 1_700_000_003_500 },
        { version: '2', status: 'READY', stage: 'Production', artifact: 's3://w/2/' },
        { version: '1', status: 'READY', stage: 'Production:PendingApproval', artifact: 'arn:aws:sagemaker:x' },
      ],
    })
    expect(server.operations.join(' ')).toBe(
      `${'ListModelPackages '.repeat(3)}${'DescribeModelPackage '.repeat(3)}`.trim(),
    )
  })

  it('is asked again when it is throttled or away, a bounded number of times', async () => {
    server.packages = [package_(1)]
    server.next.push(awsError('ThrottlingException'), json({}, 503))
    expect(await registryOf().versions('llama')).toMatchObject({ kind: 'found', items: [{ version: '1' }] })
    expect(server.operations).toHaveLength(4)
    server.next.push(...Array.from({ length: 9 }, () => awsError('ThrottlingException')))
    expect(await registryOf().versions('llama')).toMatchObject({
      because: 'ListModelPackages: the service answered 400 ThrottlingException: too many calls. Try again later',
    })
    expect(server.next).toHaveLength(6)
  })

  it('has a bound of described versions: the newest', async () => {
    server.pageSize = 100
    server.packages = Array.from({ length: 502 }, (_, i) => package_(502 - i))
    const answer = await registryOf().versions('llama')
    if (answer.kind === 'failed') throw new Error(answer.because)
    expect(answer.items.filter(({ status }) => status === 'READY')).toHaveLength(500)
    expect(answer.items.at(-1)).toMatchObject({ version: '1', status: 'older than the newest 500' })
  })

  const cases: ReadonlyArray<readonly [string, Reply | object, string]> = [
    ['refuses', awsError('AccessDeniedException'), 'AccessDeniedException: allow sagemaker:ListModelPackages and'],
    ['has forgotten the session', awsError('ExpiredTokenException', 403), 'the session token has expired'],
    ['does not know the key', awsError('UnrecognizedClientException', 403), 'the access key or the session token'],
    ['sees a wrong signature', { region: 'us-east-1' }, 'check the secret key, the region and the clock'],
    ['has no such group', { group: 'nobody' }, 'ValidationException: check the name of the model package group'],
    ['is none', text('<html>'), 'the service sent something that is not an object'],
    ['is none, and says so', text('<html>', 404), 'the service answered 404'],
    ['is away', { url: 'http://127.0.0.1:9' }, 'the service could not be asked: ECONNREFUSED'],
    ['hangs', { timeoutMs: 50, hangs: true }, 'the service could not be asked: '],
    ['never ends', { isEndless: true }, 'there are more than 100 pages'],
  ]
  it.each(cases)('that %s is a value without secrets', async (_what, given, because) => {
    const more = typeof given === 'function' ? {} : (given as Record<string, unknown>)
    if (typeof given === 'function') server.next.push(given as Reply)
    if (more['hangs'] === true) server.next.push(...Array.from({ length: 3 }, (): Reply => () => {}))
    server.isEndless = more['isEndless'] === true
    const answer = await registryOf(more).versions((more['group'] as string | undefined) ?? 'llama')
    expect(answer).toMatchObject({ kind: 'failed', because: expect.stringContaining(because) })
    expect(inspect(answer, { depth: 9 })).not.toContain(AWS_CREDENTIAL.secretKey)
    expect(server.operations.length).toBeLessThanOrEqual(100)
  })
})
