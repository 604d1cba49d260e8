import { HttpOpenAiBackend } from '../../src/backends/http-openai.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { DIALECTS } from '../support/engine-oddities.ts'
import { answers, type Behaviour, dropsConnection, FakeUpstream } from '../support/fake-upstream.ts'
import { type BackendUnderTest, describeBackend } from './backend.contract.ts'

/** What every backend owes, in every engine's dialect. */
async function over(behaviour: Behaviour, isHealthy = true): Promise<BackendUnderTest> {
  const upstream = await FakeUpstream.start(behaviour)
  upstream.isHealthy = isHealthy
  const backend = new HttpOpenAiBackend({ url: upstream.url, upstreamModel: undefined, clock: epochClock() })
  const close = async (): Promise<void> => {
    await backend.close()
    await upstream.close()
  }
  return { backend, openCount: () => upstream.openAnswers, close }
}

/** The suite's requests arrive at instant 0 and have ten minutes: a clock that begins there. */
function epochClock() {
  const live = new LiveClock()
  const startedAt = live.now()
  return {
    now: () => live.now() - startedAt,
    at: (instant: number, fn: () => void) => live.at(instant + startedAt, fn),
    sleep: (us: number) => live.sleep(us),
  }
}

const endlessly = answers({ words: Array.from({ length: 10_000 }, (_, i) => `w${i} `), everyMs: 2 })

for (const dialect of DIALECTS)
  describeBackend({
    name: `http-openai, in the words of ${dialect.name}`,
    well: () => over(dialect.answers),
    endless: () => over(endlessly),
    full: () => over(dialect.full),
    unable: () => over(dialect.unable),
    lost: () => over(dropsConnection, false),
  })
