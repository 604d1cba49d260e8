import { EngineDriver } from '../../src/backends/engine-driver.ts'
import { HttpOpenAiBackend } from '../../src/backends/http-openai.ts'
import { type Scripts, SimulatedBackend } from '../../src/backends/simulated.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { Engine, type EngineOptions } from '../../src/engine/engine.ts'
import { limitsOf } from '../../src/engine/gpu-profile.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { answers, type Behaviour, dropsConnection, FakeUpstream, fails } from '../support/fake-upstream.ts'
import { ACME_KEY, startPlatform, type Tree, upstreamTree } from '../support/start-platform.ts'
import { type BackendUnderTest, describeBackend } from './backend.contract.ts'

const profile = findGpuProfile('h100-llama-8b')!
const OPTIONS: EngineOptions = { coefficients: profile.coefficients, limits: limitsOf(profile) }

const says = (tokens: number, promptTokens = 20): Scripts => ({
  scriptsFor: ({ choiceCount }) => ({
    kind: 'made',
    scripts: Array.from({ length: choiceCount }, (_, index) => ({
      promptTokens,
      sharesPrompt: index > 0,
      outputTokens: tokens,
      prefixHashes: [],
      textBetween: (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `t${from + i} `).join(''),
      finishReason: 'stop' as const,
    })),
  }),
})

async function simulated(scripts: Scripts, options = OPTIONS): Promise<BackendUnderTest> {
  const driver = new EngineDriver(new Engine(options), new LiveClock())
  const openCount = (): number => {
    const { running, waiting } = driver.view()
    return running + waiting
  }
  return { backend: new SimulatedBackend(driver, scripts), openCount, close: () => Promise.resolve() }
}

describeBackend({
  name: 'simulated',
  well: () => simulated(says(12)),
  endless: () => simulated(says(5_000)),
  full: () => simulated(says(12), { ...OPTIONS, limits: { ...OPTIONS.limits, waitingMax: 0 } }),
  unable: () => simulated(says(12, 100_000_000)),
})

function httpBackend(url: string, apiKey?: string): HttpOpenAiBackend {
  return new HttpOpenAiBackend({ url, apiKey, headers: {}, upstreamModel: undefined })
}

async function overFake(behaviour: Behaviour): Promise<BackendUnderTest & { upstream: FakeUpstream }> {
  const upstream = await FakeUpstream.start(behaviour)
  const backend = httpBackend(upstream.url)
  return {
    upstream,
    backend,
    openCount: () => upstream.openAnswers,
    close: async () => {
      await backend.close()
      await upstream.close()
    },
  }
}

/** Twenty seconds at least: an engine that is free sooner was let go. */
const endlessly = answers({ words: Array.from({ length: 10_000 }, (_, i) => `w${i} `), everyMs: 2 })

describeBackend({
  name: 'http-openai, an engine of somebody else',
  well: () => overFake(answers({ everyMs: 1 })),
  endless: () => overFake(endlessly),
  full: () => overFake(fails(503, { error: { message: 'full' } })),
  unable: () => overFake(fails(400, { error: { message: 'no' } })),
  lost: async () => {
    const under = await overFake(dropsConnection)
    under.upstream.isHealthy = false
    return under
  },
  lostInTheMiddle: () => overFake(answers({ breaksAfter: 3, everyMs: 2 })),
})

describeBackend({
  name: 'http-openai, all frames in one piece',
  well: () => overFake(answers()),
  endless: () => overFake(endlessly),
  full: () => overFake(fails(429, 'slow down')),
  unable: () => overFake(fails(422, '<html>')),
  lost: async () => {
    const under = await overFake(answers())
    await under.upstream.close()
    return under
  },
})

/** Another Spillway: what it sends is what its own clients get. */
async function overSpillway(tree?: Tree): Promise<BackendUnderTest> {
  const platform = await startPlatform(tree)
  const backend = httpBackend(platform.baseURL, ACME_KEY)
  return {
    backend,
    openCount: async () => {
      const { runningCount = 0, waitingCount = 0 } = await platform.engine()
      return runningCount + waitingCount + platform.platform.liveCount
    },
    close: async () => {
      await backend.close()
      await platform.close()
    },
  }
}

/** The same, with an engine behind it that never ends by itself. */
async function overSpillwayOverFake(): Promise<BackendUnderTest> {
  const upstream = await FakeUpstream.start(endlessly)
  const under = await overSpillway(upstreamTree([upstream.url]))
  return {
    ...under,
    openCount: async () => (await under.openCount()) + upstream.openAnswers,
    close: async () => {
      await under.close()
      await upstream.close()
    },
  }
}

describeBackend({
  name: 'http-openai, another Spillway',
  well: () => overSpillway(),
  endless: overSpillwayOverFake,
  full: () => overFake(fails(503, {})),
  unable: () => overFake(fails(400, {})),
})
