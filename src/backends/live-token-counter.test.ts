import { afterEach, describe, expect, it } from 'vitest'
import { realTokenizer } from '../../test/support/engine-tokenizer.ts'
import { eventually } from '../../test/support/eventually.ts'
import { LiveClock } from '../base/live-clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { TOKEN_COUNTER_DEFAULTS, TokenCounter, type TokenCounterOptions } from './live-token-counter.ts'
import { encodeWhole } from './tokenizer.ts'

const open: TokenCounter[] = []
afterEach(() => {
  for (const counter of open.splice(0)) counter.close()
})

function make(options: Partial<TokenCounterOptions> = {}): TokenCounter {
  const counter = new TokenCounter({ clock: new LiveClock(), ...options })
  open.push(counter)
  return counter
}

const ask = (text: string, tenantId = 'acme') => ({ tenantId, texts: [text], tokensMax: 1e9 })

/** A thread that never says that it is ready. */
const SILENT = new URL('data:text/javascript,setInterval(()=>{},1000)')
const BROKEN = new URL('data:text/javascript,throw new Error("no tokenizer here")')

describe('the token counter', () => {
  it('loads nothing before it is asked, and then counts as the engine does', { timeout: 30_000 }, async () => {
    const counter = make({ limits: { answerUsMax: 20_000_000, workMsMax: 20_000 } })
    expect(counter.isLoaded).toBe(false)
    const text = 'The weir spills what the river cannot hold. '.repeat(2_000)
    const counted = await counter.count(ask(text))
    expect(counted).toEqual({ counts: [encodeWhole(await realTokenizer(), text).length], isOver: false })
    expect(await counter.count({ ...ask(text), tokensMax: 5_000 })).toMatchObject({ isOver: true })
    expect(counter.waitingCount).toBe(0)
  })

  it('gives up on a text that takes too long, and goes on with the next', { timeout: 30_000 }, async () => {
    const counter = make({ limits: { answerUsMax: 20_000_000, workMsMax: 20 } })
    expect(await counter.count(ask('qxzjkvwbpg'.repeat(300_000)))).toBeUndefined()
    expect(await counter.count(ask('hello'))).toEqual({ counts: [1], isOver: false })
  })

  it('answers nobody later than its bound, however long the thread takes', async () => {
    const clock = new VirtualClock()
    const counter = make({ clock, thread: SILENT })
    const answered = counter.count(ask('hello'))
    const from = clock.now()
    await clock.run(from + TOKEN_COUNTER_DEFAULTS.answerUsMax)
    expect(await answered).toBeUndefined()
    expect(counter.waitingCount).toBe(0)
  })

  it('lets a bounded number wait, and a smaller number of one tenant', async () => {
    const clock = new VirtualClock()
    const counter = make({
      clock,
      thread: SILENT,
      limits: { waitingMax: 5, waitingOfTenantMax: 3, charactersWaitingMax: 1_000 },
    })
    const asks = ['a', 'a', 'a', 'a', 'b', 'b', 'c'].map((tenantId) => counter.count(ask('hello', tenantId)))
    expect(counter.waitingCount).toBe(5)
    await expect(asks[3]).resolves.toBeUndefined()
    await expect(asks[6]).resolves.toBeUndefined()
    await clock.run(clock.now() + TOKEN_COUNTER_DEFAULTS.answerUsMax)
    expect(await Promise.all(asks)).toEqual(Array(7).fill(undefined))
    // A text that is too long to wait has no place, even in an empty line.
    expect(await counter.count(ask('x'.repeat(1_001)))).toBeUndefined()
    void counter.count(ask('x'.repeat(1_000)))
    expect(counter.waitingCount).toBe(1)
  })

  it('rests after a thread was lost, and tells those who wait at once', async () => {
    const clock = new VirtualClock()
    const counter = make({ clock, thread: BROKEN })
    expect(await counter.count(ask('hello'))).toBeUndefined()
    expect(counter.isLoaded).toBe(false)
    expect(await counter.count(ask('hello'))).toBeUndefined()
    expect(counter.isLoaded).toBe(false)
    await clock.run(clock.now() + TOKEN_COUNTER_DEFAULTS.restUs)
    void counter.count(ask('hello'))
    expect(counter.isLoaded).toBe(true)
  })

  it('gives its memory back when nobody asks any more', async () => {
    const counter = make({ limits: { answerUsMax: 20_000_000, idleUs: 50_000 } })
    expect(await counter.count(ask('hello'))).toBeDefined()
    expect(counter.isLoaded).toBe(true)
    await eventually('its memory is given back', () => !counter.isLoaded)
    expect(await counter.count(ask('hello'))).toBeDefined()
  })
})
