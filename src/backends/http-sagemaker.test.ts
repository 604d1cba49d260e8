import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AWS_TEST_REGION, awsFails, awsFrame, framed, isSigned, KeyDesk } from '../../test/support/fake-sagemaker.ts'
import { answers, type Behaviour, FakeUpstream, fails, WORDS } from '../../test/support/fake-upstream.ts'
import { callOpenAi, word } from '../../test/support/openai-call.ts'
import { FRESH_CREDENTIAL, FreshCredential } from './fresh-credential.ts'
import { SageMakerAnswer, sageMakerAuthorizer, sageMakerPath, sageMakerRegion } from './http-sagemaker.ts'

let upstream: FakeUpstream
let desk: KeyDesk
let credential: FreshCredential
let fetchCount = 0
let now = 0

beforeEach(async () => {
  upstream = await FakeUpstream.start()
  desk = new KeyDesk()
  upstream.guard = desk.guard
  fetchCount = 0
  now = 1_000_000
  credential = new FreshCredential({
    now: () => now,
    after: () => () => {},
    fetch: () => {
      fetchCount++
      const { accessKeyId, secretAccessKey: secretKey, sessionToken } = desk.keys
      return Promise.resolve({ kind: 'keys', accessKeyId, secretKey, sessionToken, endsAtMs: undefined })
    },
  })
})
afterEach(async () => {
  desk.close()
  await upstream.close()
})

function call(behaviour: Behaviour, isStreamed = true, headers: Record<string, string> = {}) {
  const url = new URL('/endpoints/llama-8b', upstream.url).href
  const authorizer = sageMakerAuthorizer(credential, { url, region: AWS_TEST_REGION })
  const unwraps = (reader: ConstructorParameters<typeof SageMakerAnswer>[0]) => new SageMakerAnswer(reader)
  return callOpenAi(upstream, behaviour, { url, authorizer, unwraps, headers, pathOf: sageMakerPath }, { isStreamed })
}

/** Frames as the test writes them. */
const sendsFrames =
  (...pieces: Buffer[]): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
    for (const piece of pieces) res.write(piece)
    res.end()
  }

const textOf = ({ deltas }: Awaited<ReturnType<typeof call>>): string =>
  deltas
    .flatMap(({ choices }) => choices ?? [])
    .map(({ content }) => content ?? '')
    .join('')

describe('what it sends', () => {
  it.each([
    [true, '/endpoints/llama-8b/invocations-response-stream'],
    [false, '/endpoints/llama-8b/invocations'],
  ])('goes to the path for it, signed (streamed: %s)', async (isStreamed, path) => {
    const said = await call(framed(answers()), isStreamed)
    expect(said.ending.kind).toBe('finished')
    expect(textOf(said)).toBe(WORDS.join(''))
    expect(upstream.seen.map((seen) => seen.path)).toEqual([path])
    expect(upstream.seen[0]?.body['stream'] ?? false).toBe(isStreamed)
  })

  it('is signed with the headers that choose a component', async () => {
    await call(framed(answers()), true, { 'X-Amzn-SageMaker-Inference-Component': 'blue' })
    const { headers } = upstream.seen[0]!
    expect(headers['x-amzn-sagemaker-inference-component']).toBe('blue')
    expect(headers.authorization).toMatch(
      /\/eu-central-1\/sagemaker\/aws4_request, ?SignedHeaders=[a-z0-9;-]*x-amzn-sagemaker-inference-component/,
    )
  })

  it('is refused by AWS’s own signer when a byte is another', async () => {
    let verdicts: boolean[] = []
    upstream.guard = async (req, text) => {
      const changed = { method: req.method, url: req.url, headers: { ...req.headers, host: 'another' } } as typeof req
      const moved = { method: req.method, headers: req.headers, url: `${req.url}x` } as typeof req
      verdicts = [
        await isSigned(req, text, desk.keys),
        await isSigned(req, `${text} `, desk.keys),
        await isSigned(changed, text, desk.keys),
        await isSigned(moved, text, desk.keys),
        await isSigned(req, text, { ...desk.keys, secretAccessKey: 'another' }),
      ]
      return undefined
    }
    await call(framed(answers()))
    expect(verdicts).toEqual([true, false, false, false, false])
  })

  it.each([
    ['https://runtime.sagemaker.us-west-2.amazonaws.com/endpoints/x', 'us-west-2'],
    ['https://runtime-fips.sagemaker.us-gov-west-1.amazonaws.com/endpoints/x', 'us-gov-west-1'],
    ['https://vpce-1-2.runtime.sagemaker.eu-west-1.vpce.amazonaws.com/endpoints/x', 'eu-west-1'],
    ['https://runtime.sagemaker.cn-north-1.amazonaws.com.cn/endpoints/x', 'cn-north-1'],
    ['http://127.0.0.1:8080/endpoints/x', undefined],
  ])('knows the region of %s', (url, region) => {
    expect(sageMakerRegion(url)).toBe(region)
  })
})

describe('frames', () => {
  const whole = Buffer.concat([awsFrame(word('A weir')), awsFrame(word('.', 'stop')), awsFrame('data: [DONE]\n\n')])

  it('may be cut anywhere, and their lines too', async () => {
    for (const partBytes of [1, 3, 50]) {
      const said = await call(framed(answers(), { partBytes, writeBytes: partBytes + 4 }))
      expect([said.ending.kind, textOf(said)]).toEqual(['finished', WORDS.join('')])
    }
  })

  it('of another kind are passed over', async () => {
    const said = await call(sendsFrames(awsFrame('?', { ':event-type': 'Initial' }), awsFrame(''), whole))
    expect([said.ending.kind, textOf(said)]).toEqual(['finished', 'A weir.'])
  })

  it('of JSON lines are read too, as LMI writes them', async () => {
    const chunk = (content: string, finish_reason: string | null = null): string =>
      `${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n`
    const lines = [chunk('A '), chunk('weir'), chunk('.', 'stop')].join('')
    for (const [text, partBytes] of [
      [lines, 1],
      [lines, 17],
      [lines, lines.length],
      [lines.trimEnd(), 17],
    ] as const) {
      const parts: Buffer[] = []
      for (let at = 0; at < text.length; at += partBytes) parts.push(awsFrame(text.slice(at, at + partBytes)))
      const said = await call(sendsFrames(...parts))
      expect([said.ending.kind, textOf(said)]).toEqual(['finished', 'A weir.'])
    }
  })

  const corrupt = (at: number): Buffer => {
    const bad = awsFrame(word('never'))
    bad[at < 0 ? bad.length + at : at]! ^= 1
    return bad
  }
  it.each([
    ['whose prelude is corrupt', corrupt(1), 'CORRUPT_FRAME'],
    ['whose payload is corrupt', corrupt(-9), 'CORRUPT_FRAME'],
    ['whose checksum is corrupt', corrupt(-1), 'CORRUPT_FRAME'],
    ['that end too early', awsFrame(word('never')).subarray(0, -1), 'CUT_FRAME'],
    ['that tell of a broken model', exception('ModelStreamError'), 'ModelStreamError'],
    ['that tell of a failed service', exception('InternalStreamFailure'), 'InternalStreamFailure'],
    ['that are an error', awsFrame('{}', { ':message-type': 'error', ':error-code': 'E' }), 'E'],
  ])('%s lose the answer, and leave what came', async (_, bad, code) => {
    const said = await call(sendsFrames(awsFrame(word('A weir')), bad))
    expect(said.ending).toEqual({ kind: 'lost', because: `the connection to the engine failed: ${code}` })
    expect(textOf(said)).toBe('A weir')
  })

  it('that stop between two of them lose the answer as well', async () => {
    const said = await call(sendsFrames(awsFrame(word('A weir'))))
    expect(said.ending).toMatchObject({ kind: 'lost' })
  })
})

function exception(type: string): Buffer {
  return awsFrame('{"Message":"A secret prompt"}', { ':message-type': 'exception', ':exception-type': type })
}

describe('errors', () => {
  const model = (OriginalStatusCode: unknown, OriginalMessage: unknown) =>
    awsFails(424, 'ModelError', { Message: 'Received error from primary', OriginalStatusCode, OriginalMessage })
  const told = JSON.stringify({ error: { message: 'The context is 4096 tokens.', code: 'context_length_exceeded' } })

  it.each<[string, Behaviour, object]>([
    [
      'the container’s word about the request',
      model(400, told),
      { kind: 'refused', refusal: { code: 'context-length-exceeded', blame: 'request' } },
    ],
    ['a full container', model(429, '{}'), { kind: 'refused', refusal: { code: 'replica-refused' } }],
    ['a failed container', model(500, 'Traceback …'), { kind: 'lost' }],
    ['a container without a word', model(undefined, undefined), { kind: 'lost' }],
    ['a container with an odd status', model(200, '{}'), { kind: 'lost' }],
    ['throttling', awsFails(400, 'ThrottlingException'), { kind: 'refused', refusal: { code: 'replica-refused' } }],
    ['a model that loads', awsFails(429, 'ModelNotReadyException'), { refusal: { code: 'replica-refused' } }],
    ['a service that is away', awsFails(503, 'ServiceUnavailable'), { refusal: { code: 'replica-refused' } }],
    ['a dependency that failed', awsFails(530, 'InternalDependencyException'), { kind: 'lost' }],
    ['no permission', awsFails(403, 'AccessDeniedException'), { refusal: { code: 'replica-denied' } }],
    [
      'no such endpoint',
      awsFails(400, 'ValidationError', { Message: 'Endpoint x of account 1 not found.' }),
      { kind: 'refused', refusal: { code: 'replica-denied', blame: 'platform' } },
    ],
    [
      'another mistake',
      awsFails(400, 'ValidationError', { Message: '1 validation error' }),
      { kind: 'refused', refusal: { blame: 'request' } },
    ],
    ['a page of a proxy', fails(502, '<html>'), { kind: 'lost' }],
    ['more than is read', fails(400, 'x'.repeat(100_000)), { kind: 'refused', refusal: { blame: 'request' } }],
  ])('%s', async (_, behaviour, wanted) => {
    expect((await call(behaviour)).ending).toMatchObject(wanted)
    expect(fetchCount).toBe(1)
  })

  it('of keys that have ended: they are replaced, and the call is made once more', async () => {
    await call(framed(answers()))
    desk.issue()
    now += FRESH_CREDENTIAL.replaceMs
    const said = await call(framed(answers()))
    expect([said.ending.kind, textOf(said), fetchCount]).toEqual(['finished', WORDS.join(''), 2])
    expect(upstream.seen).toHaveLength(3)
  })

  it('of keys that nobody knows stand, and nothing secret is in them', async () => {
    await call(framed(answers()))
    const { keys } = desk
    upstream.guard = () => awsFails(403, 'UnrecognizedClientException', { message: JSON.stringify(keys) })
    now += FRESH_CREDENTIAL.replaceMs
    const { ending } = await call(answers())
    expect(ending).toMatchObject({ kind: 'refused', refusal: { code: 'replica-denied' } })
    upstream.guard = () => model(400, JSON.stringify({ error: { message: JSON.stringify(keys) } }))
    const quoted = JSON.stringify((await call(answers())).ending)
    expect(quoted).toContain('[redacted]')
    for (const secret of [keys.secretAccessKey, keys.sessionToken]) {
      expect(JSON.stringify(ending)).not.toContain(secret)
      expect(quoted).not.toContain(secret)
    }
  })

  it('of a source that has no keys', async () => {
    const fetch = () => Promise.resolve({ kind: 'token', token: 't', endsAtMs: undefined } as const)
    credential = new FreshCredential({ fetch, now: () => 0, after: () => () => {} })
    expect((await call(answers())).ending).toMatchObject({
      kind: 'lost',
      because: expect.stringContaining('takes keys'),
    })
  })
})
