import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { answers, type Behaviour, FakeUpstream } from '../support/fake-upstream.ts'
import { postJson, startPlatform, testTree } from '../support/start-platform.ts'

/** Two models on one server: the same address in two pools is one engine, with one room. */

const open: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

/** An engine that answers when it is told to, and counts. */
class HeldAnswers {
  readonly held: Array<{ readonly model: string; readonly answer: () => void }> = []
  readonly taken: string[] = []
  runningMax = 0
  running = 0

  readonly behaviour: Behaviour = async (call) => {
    const model = String(call.body['model'])
    this.taken.push(model)
    this.running++
    this.runningMax = Math.max(this.runningMax, this.running)
    await new Promise<void>((resolve) => this.held.push({ model, answer: resolve }))
    // Before the answer goes out: from then on the gateway may send the next.
    this.running--
    await answers()(call)
  }

  answerFirst(): void {
    this.held.shift()?.answer()
  }
}

const ROOM = 2

async function start(engineNames: readonly [string?, string?] = []) {
  const engine = new HeldAnswers()
  const upstream = await FakeUpstream.start(engine.behaviour)
  open.push(upstream)
  const pool = (model: string, engineName: string | undefined) => ({
    model,
    backend: { kind: 'http-openai', timeoutMs: 20_000 },
    replicas: [upstream.url],
    limit: { kind: 'fixed', concurrencyMax: ROOM },
    ...(engineName !== undefined && { engineName }),
  })
  const platform = await startPlatform(
    testTree({
      models: [{ name: 'one' }, { name: 'two' }],
      pools: [pool('one', engineNames[0]), pool('two', engineNames[1])],
    }),
  )
  open.push(platform)
  const ask = async (model: string): Promise<number> => {
    const messages = [{ role: 'user', content: 'How high is the water?' }]
    const response = await postJson(`${platform.baseURL}/chat/completions`, { model, messages, max_tokens: 8 })
    await response.text()
    return response.status
  }
  const { turnstile } = platform.platform
  const waiting = (count: number) => eventually(`${count} wait`, () => turnstile.view().waiting === count)
  const running = (count: number) => eventually(`${count} run`, () => engine.held.length === count)
  return { engine, ask, waiting, running }
}

describe('an engine at the address of two pools', () => {
  it('has one room, and a place that one pool frees goes to the ticket of the other that waits', async () => {
    const { engine, ask, waiting, running } = await start()
    const first = [ask('one'), ask('one')]
    await running(2)
    const second = ask('two')
    await waiting(1)
    expect(engine.taken).toEqual(['one', 'one'])
    engine.answerFirst()
    await eventually('the other pool has its turn', () => engine.taken.length === 3)
    expect(engine.taken).toEqual(['one', 'one', 'two'])
    expect(engine.runningMax).toBe(ROOM)
    while (engine.held.length > 0) engine.answerFirst()
    expect(await Promise.all([...first, second])).toEqual([200, 200, 200])
  })

  it('never has more than its room in sum, and a burst for the one model does not hold up the other', async () => {
    const { engine, ask, waiting } = await start()
    const asked = Array.from({ length: 12 }, () => ask('one'))
    await waiting(12 - ROOM)
    asked.push(...Array.from({ length: 6 }, () => ask('two')))
    await waiting(18 - ROOM)
    for (let answered = 0; answered < 18; answered++) {
      await eventually('something runs', () => engine.held.length > 0)
      engine.answerFirst()
    }
    expect(await Promise.all(asked)).toEqual(Array.from({ length: 18 }, () => 200))
    expect(engine.runningMax).toBe(ROOM)
    // Turns in turn: the six of the second model are among the first fourteen, though twelve others came before.
    expect(engine.taken.slice(0, 14).filter((model) => model === 'two')).toHaveLength(6)
  })

  it('is counted for each pool that gives it another name', async () => {
    const { engine, ask, running } = await start(['left', 'right'])
    const asked = [ask('one'), ask('one'), ask('two'), ask('two')]
    await running(4)
    expect(engine.runningMax).toBe(4)
    while (engine.held.length > 0) engine.answerFirst()
    expect(await Promise.all(asked)).toEqual([200, 200, 200, 200])
  })
})
