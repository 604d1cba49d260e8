import { expect, it } from 'vitest'
// @ts-expect-error The page's own code has no types.
import { merged } from '../../pages/merge.js'
import { ConsoleDelta } from './console-delta.ts'
import { ConsoleFeed } from './console-feed.ts'
import type { ConsoleView } from './console-view.ts'

const merge = merged as (view: ConsoleView | undefined, delta: object) => ConsoleView
const SECOND = 1_000_000

it('gives a page, put together, what the feed has; and little while little changes', () => {
  const feed = new ConsoleFeed()
  const delta = new ConsoleDelta()
  for (let i = 0; i < 200; i++)
    feed.take({ kind: 'replica-reported', at: SECOND, replicaId: `r${i}`, isReady: true, because: 'it answers' })
  let shown: ConsoleView | undefined
  const sizes: number[] = []
  for (let second = 1; second <= 40; second++) {
    const at = second * SECOND
    if (second % 3 === 0)
      feed.take({ kind: 'replica-reported', at, replicaId: `r${second}`, isReady: false, because: 'it is away' })
    for (let i = 0; i < second; i++)
      feed.take({
        kind: 'arrived',
        at,
        ticketId: 't',
        tenantId: `t${i % 7}`,
        keyId: 'k',
        model: 'm',
        band: 'standard',
        promptTokens: 1,
        isStreamed: true,
      })
    if (second === 20) delta.restart()
    const view = feed.view(at, 0)
    const message = delta.spell(view)
    sizes.push(message.length)
    shown = merge(shown, JSON.parse(message) as object)
    expect(shown, `second ${second}`).toEqual(
      JSON.parse(JSON.stringify({ ...view, firstTokenP95Ms: null, second: view.second ?? null })),
    )
  }
  expect(sizes[0]).toBeGreaterThan(10_000)
  expect(sizes[19]).toBeGreaterThan(10_000)
  expect(Math.max(...sizes.slice(1, 5))).toBeLessThan(4_000)
})
