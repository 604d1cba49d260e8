import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { PassingEngine, takes } from '../../test/support/passing-engine.ts'
import { makeRequest } from '../../test/support/requests.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { Delta } from '../domain/delta.ts'
import { FULL_RUNG, type Plan } from '../domain/plan.ts'
import type { OpenBody, Transit } from '../domain/transit.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { FreshCredential } from './fresh-credential.ts'
import { bearerAuthorizer } from './http-authorized.ts'
import { HttpOpenAiBackend } from './http-openai.ts'

/** What every backend owes the story, for requests that pass through (`test/contract/backend.contract.ts` has the rest). */

let engine: PassingEngine
let backend: HttpOpenAiBackend

beforeEach(async () => {
  engine = await PassingEngine.start(takes())
  backend = new HttpOpenAiBackend({ url: engine.url, upstreamModel: 'theirs', apiKey: 'sk-secret-of-ours' })
})
afterEach(async () => {
  await backend.close()
  await engine.close()
})

/** A body of these pieces; `closed` when nobody reads it any more. */
class TestBody {
  readonly isUpload = true
  readonly canOpen = true
  opened: string | undefined
  isClosed = false
  readonly #pieces: () => AsyncGenerator<Uint8Array>

  constructor(pieces: () => AsyncGenerator<Uint8Array>) {
    this.#pieces = pieces
  }

  open(model: string): OpenBody {
    this.opened = model
    return {
      length: undefined,
      pieces: this.#pieces(),
      close: () => {
        this.isClosed = true
      },
    }
  }
}

async function* short(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('one ')
  yield Buffer.from('two')
}

interface Begun {
  readonly ending: Promise<Ending>
  readonly deltas: Delta[]
  readonly body: TestBody
  readonly cancellation: Cancellation
}

function begin(pieces = short, more: Partial<Transit> = {}): Begun {
  const body = new TestBody(pieces)
  const transit: Transit = {
    route: 'audio',
    path: '/audio/speech',
    contentType: 'text/odd; charset=latin1',
    accept: 'audio/mpeg',
    body,
    ...more,
  }
  const request = makeRequest({ kind: 'transit', transit, text: undefined })
  const estimate = { promptTokens: 1, cachedTokens: 0, outputTokens: 0, outputTokensHigh: 0, cost: 1, engineUs: 0 }
  const plan: Plan = {
    rung: FULL_RUNG,
    model: 'ours',
    releaseId: 'ours@1',
    segments: request.segments,
    keptSegments: [0],
    outputTokensMax: 0,
    estimate,
  }
  const replica = { id: 'r-0', poolId: 'p', model: 'ours', releaseId: 'ours@1', region: 'local' }
  const deltas: Delta[] = []
  const cancellation = new Cancellation()
  let isOver = false
  const sink = {
    write(delta: Delta): undefined {
      expect(isOver, 'nothing is written afterwards').toBe(false)
      deltas.push(delta)
    },
  }
  const lease = { id: 1, ticketId: request.id, replica }
  const ending = backend.generate({ lease, request, plan, sink, cancellation })
  void ending.then(() => {
    isOver = true
  })
  return { ending, deltas, body, cancellation }
}

const bytesOf = (deltas: readonly Delta[]): string =>
  deltas.map(({ bytes }) => (bytes === undefined ? '' : Buffer.from(bytes).toString())).join('')

describe('a transit', () => {
  it('is sent under the engine’s version, with the engine’s name for the model and our key', async () => {
    const { ending, deltas, body } = begin()
    expect(await ending).toEqual({ kind: 'finished', usage: undefined })
    expect(body).toMatchObject({ opened: 'theirs', isClosed: true })
    const [seen] = engine.seen
    expect(seen).toMatchObject({ path: '/v1/audio/speech', body: { begin: 'one two' } })
    expect(seen?.headers).toMatchObject({
      'content-type': 'text/odd; charset=latin1',
      accept: 'audio/mpeg',
      authorization: 'Bearer sk-secret-of-ours',
    })
    expect(deltas[0]?.result).toMatchObject({ kind: 'transit', head: { status: 200 } })
    expect(bytesOf(deltas)).toBe('{"text":"a weir"}')
  })

  it('is sent with a token that ends, and not again where that is refused: its body is gone', async () => {
    await backend.close()
    const fetch = () => Promise.resolve({ kind: 'token', token: 'a-token', endsAtMs: undefined } as const)
    const credential = new FreshCredential({ fetch, now: () => 0, after: () => () => {} })
    const authorizer = bearerAuthorizer(credential)
    backend = new HttpOpenAiBackend({ url: engine.url, upstreamModel: 'theirs', authorizer })
    expect(await begin().ending).toMatchObject({ kind: 'finished' })
    engine.next(async ({ res, readAll }) => {
      await readAll()
      res.writeHead(401).end()
    })
    expect(await begin().ending).toMatchObject({ kind: 'refused', refusal: { code: 'replica-denied' } })
    expect(engine.seen.map(({ headers }) => headers.authorization)).toEqual(['Bearer a-token', 'Bearer a-token'])
  })

  it('may go beside the version', async () => {
    expect(await begin(short, { path: '/tokenize', isRooted: true }).ending).toMatchObject({ kind: 'finished' })
    expect(engine.seen[0]?.path).toBe('/tokenize')
  })

  it('passes on headers about the answer, and none about the connection', async () => {
    engine.next(async ({ res, readAll }) => {
      await readAll()
      res.writeHead(201, { 'content-type': 'a/b', 'content-disposition': 'inline', 'set-cookie': 'x=1', server: 'odd' })
      res.end()
    })
    const { ending, deltas } = begin()
    await ending
    const { result } = deltas[0]!
    expect(result).toEqual({
      kind: 'transit',
      head: { status: 201, headers: ['content-type', 'a/b', 'content-disposition', 'inline'] },
    })
  })

  it.each([
    [503, { kind: 'refused', refusal: { code: 'replica-refused', blame: 'platform', retryAfterUs: 7_000_000 } }],
    [403, { kind: 'refused', refusal: { code: 'replica-denied' } }],
    [500, { kind: 'lost' }],
    [302, { kind: 'refused', refusal: { code: 'replica-denied' } }],
    [404, { kind: 'refused', refusal: { code: 'replica-rejected-request', blame: 'request', kept: { status: 404 } } }],
    [422, { kind: 'refused', refusal: { code: 'replica-rejected-request', blame: 'request', kept: { status: 422 } } }],
  ])('that gets %i ends as a value, and nothing was written', async (status, wanted) => {
    engine.next(async ({ res, readAll }) => {
      await readAll()
      res.writeHead(status, { 'retry-after': '7' }).end('the key sk-secret-of-ours is odd')
    })
    const { ending, deltas, body } = begin()
    const ended = await ending
    expect(ended).toMatchObject(wanted)
    expect(JSON.stringify(ended)).not.toContain('sk-secret-of-ours')
    expect(deltas).toEqual([])
    expect(body.isClosed).toBe(true)
  })

  it('that is refused at length has no answer to keep', async () => {
    engine.next(takes('x'.repeat(100_000), 400))
    const ended = await begin().ending
    expect(ended).toMatchObject({ kind: 'refused', refusal: { code: 'replica-rejected-request' } })
    expect((ended as { refusal: object }).refusal).not.toHaveProperty('kept')
  })

  it('that is cancelled in the middle of its body leaves the engine at once', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        yield Buffer.alloc(1_024)
        await new Promise(setImmediate)
      }
    }
    engine.next(async ({ readAll }) => void (await readAll()))
    const { ending, body, cancellation } = begin(endless)
    await eventually('the engine has it', () => engine.openCount === 1 || undefined)
    cancellation.cancel('client-gone')
    expect(body.isClosed).toBe(true)
    expect(await ending).toEqual({ kind: 'cancelled' })
    await eventually('the engine is free', () => engine.openCount === 0 || undefined)
  })

  it('that is cancelled before it begins asks nobody', async () => {
    const cancellation = new Cancellation()
    cancellation.cancel('client-gone')
    const { ending, body, cancellation: own } = begin()
    own.cancel('client-gone')
    expect(await ending).toEqual({ kind: 'cancelled' })
    expect(body.isClosed).toBe(true)
  })

  it('whose engine is not there is lost', async () => {
    await engine.close()
    expect(await begin().ending).toMatchObject({ kind: 'lost', because: expect.stringContaining('ECONNREFUSED') })
  })
})
