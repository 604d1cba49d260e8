import { afterEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { LANE_DEFAULTS } from '../../src/policy/fairness/lane.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream, type UpstreamCall } from '../support/fake-upstream.ts'
import { ACME_KEY, MODEL, postJson, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/**
 * Ageing, live: bids order a tenant's own requests, and waiting counts like a bid. The reference documents' queue has
 * priorities that never age, so a low bid waits for ever behind a stream of higher ones. Here one place is held while
 * four requests queue up; the order in which the engine then sees them is the order of turns.
 */

const SECONDS_PER_BID = LANE_DEFAULTS.agingUsPerBid / 1e6

describe('ageing in a live queue', () => {
  const open: Array<{ close(): Promise<void> }> = []
  afterEach(async () => {
    for (const one of open.splice(0).toReversed()) await one.close()
  })

  const named = ({ seen }: FakeUpstream): string[] =>
    seen.map(({ body }) => (body['messages'] as Array<{ content: string }>)[0]!.content)

  const admitted = ({ entries }: TestPlatform): number => entries.filter(({ kind }) => kind === 'admitted').length

  it('a bid overtakes who came just before it, and not who has waited longer than the bid is worth', async () => {
    let release: () => void = () => {}
    const upstream = await FakeUpstream.start(answers())
    open.push(upstream)
    upstream.next(async (call: UpstreamCall) => {
      await new Promise<void>((resolve) => {
        release = resolve
      })
      await answers()(call)
    })
    const tenants = [{ id: 'acme', slo: 'patient', bidMax: 100, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] }]
    const platform = await startPlatform(upstreamTree([upstream.url], { tenants }, 1))
    open.push(platform)

    const sent: Array<Promise<Response>> = []
    const send = async (content: string, bid: number): Promise<void> => {
      const before = admitted(platform)
      const message = { model: MODEL, messages: [{ role: 'user', content }], max_tokens: 4 }
      sent.push(postJson(`${platform.baseURL}/chat/completions`, message, { 'x-spillway-bid': `${bid}` }))
      await eventually(`${content} is admitted`, () => admitted(platform) > before)
    }
    await send('holds the place', 0)
    await eventually('the place is held', () => upstream.seen.length === 1)
    await send('came first, bids nothing', 0)
    const queuedAt = performance.now()
    await eventually('the first has waited for longer than a bid of 1 is worth', () => {
      return performance.now() - queuedAt > 1.1 * 1_000 * SECONDS_PER_BID
    })
    await send('came later, bids 1', 1)
    await send('came last but one, bids nothing', 0)
    await send('came last, bids 50', 50)
    release()
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(named(upstream)).toEqual([
      'holds the place',
      'came last, bids 50',
      'came first, bids nothing',
      'came later, bids 1',
      'came last but one, bids nothing',
    ])
  })
})
