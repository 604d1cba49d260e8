import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import {
  answers,
  type Behaviour,
  FakeUpstream,
  isQuestion,
  type UpstreamCall,
  WORDS,
} from '../support/fake-upstream.ts'
import { framesIn, textIn } from '../support/sse-frames.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** Engines that freeze: they accept requests and answer `/health`, and no answer of theirs goes on. */

const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** An engine whose core can be stopped and continued, as with SIGSTOP and SIGCONT: its front end goes on. */
async function startEngine(): Promise<{ upstream: FakeUpstream; freeze: () => void; thaw: () => void }> {
  let thawed = Promise.resolve()
  let thaw = (): void => {}
  const behaviour: Behaviour = async (call) => {
    await thawed
    if (!call.isGone()) await answers()(call)
  }
  const upstream = await FakeUpstream.start(behaviour)
  closing.push(() => upstream.close())
  return {
    upstream,
    freeze: () => {
      const gate = Promise.withResolvers<void>()
      thawed = gate.promise
      thaw = gate.resolve
    },
    thaw: () => thaw(),
  }
}

async function startFor(urls: readonly string[]): Promise<TestPlatform> {
  const platform = await startPlatform(upstreamTree(urls))
  closing.push(() => platform.close())
  return platform
}

const ask = (platform: TestPlatform, body: object = {}) =>
  postJson(`${platform.baseURL}/chat/completions`, {
    model: MODEL,
    messages: [{ role: 'user', content: 'Hello?' }],
    max_tokens: 20,
    ...body,
  })

const ready = async (platform: TestPlatform) => (await fetch(`${platform.address}/health/ready`)).status

/** Two words, and then nothing more. */
const stopsMidway: Behaviour = ({ res }: UpstreamCall) => {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const word of WORDS.slice(0, 2))
    res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: word }, finish_reason: null }] })}\n\n`)
}

describe('a frozen engine without metrics', () => {
  it('alone in its pool: clients get the reason, it is not ready within 3 s, and ready when it answers again', async () => {
    const { upstream, freeze, thaw } = await startEngine()
    const platform = await startFor([upstream.url])
    expect((await ask(platform)).status).toBe(200)
    expect(await ready(platform)).toBe(200)

    upstream.next(stopsMidway)
    const beganAt = performance.now()
    freeze()
    const [begun, waiting] = [ask(platform, { stream: true }), ask(platform, { stream: true })]
    const frames = framesIn(await (await begun).text())
    expect(textIn(frames)).toBe(WORDS.slice(0, 2).join(''))
    expect(frames.at(-1)?.error).toMatchObject({
      code: 'engine_stalled',
      message: expect.stringContaining('the engine makes no progress'),
    })
    const refused = await waiting
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).not.toBeNull()
    expect(await refused.json()).toMatchObject({ error: { code: 'engine_stalled' } })
    // The machine that runs this may be busy: of what is measured here the half is the platform's.
    expect(performance.now() - beganAt).toBeLessThan(6_000)
    expect(await ready(platform)).toBe(503)
    expect(await (await ask(platform)).json()).toMatchObject({ error: { code: 'no_replica' } })

    thaw()
    await eventually('it is ready again', async () => (await ready(platform)) === 200)
    expect((await ask(platform)).status).toBe(200)
    // All that it was asked meanwhile: what it was sent by clients, and questions of one token.
    const questions = upstream.seen.filter(({ body }) => isQuestion(body))
    expect(questions.length).toBeGreaterThan(0)
    expect(upstream.seen.length - questions.length).toBe(4)
  })

  it('beside another: the request moves there and ends whole', async () => {
    const engines = [await startEngine(), await startEngine()]
    const platform = await startFor(engines.map(({ upstream }) => upstream.url))
    // Each has answered, so that its silence counts.
    await eventually('both have answered', async () => {
      await Promise.all([ask(platform), ask(platform)])
      return engines.every(({ upstream }) => upstream.seen.length > 0)
    })
    engines[0]!.freeze()
    const seenBefore = engines[0]!.upstream.seen.length
    const answered = await Promise.all(Array.from({ length: 4 }, () => ask(platform)))
    expect(answered.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const stuck = engines[0]!.upstream.seen.slice(seenBefore).filter(({ body }) => !isQuestion(body))
    expect(stuck.length).toBeGreaterThan(0)
    engines[0]!.thaw()
  })
})
