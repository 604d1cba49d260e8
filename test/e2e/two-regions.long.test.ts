import { afterEach, describe, expect, it } from 'vitest'
import { missing } from '../support/installed.ts'
import { makeNamespaces } from '../support/network-namespaces.ts'
import { EU, killAndRestart, lostOf, US, useRegions } from '../support/region-loss.ts'
import { freePort } from '../support/servers.ts'
import { SlowLink } from '../support/slow-link.ts'

const closers: Array<() => Promise<void> | void> = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
// After the closers, so that vitest, which goes backwards, kills the regions before their lines go.
const start = useRegions()

const LIMITS = { timeout: 240_000 }
/** Long enough that many answers are on their way when the region dies. */
const TOKENS = 120
const withoutIp = missing('ip')

describe('two regions, one of which is killed, lose nobody of the other one', () => {
  it('over a long line that breaks', LIMITS, async () => {
    const [euPort, usPort] = await Promise.all([freePort(), freePort()])
    const line = await SlowLink.to(usPort, { delayMs: 20, breakEvery: 5 })
    closers.push(() => line.close())
    const eu = await start({ ...EU, port: euPort, peer: { name: 'us', url: line.url } })
    const startUs = () => start({ ...US, port: usPort, peer: { name: 'eu', url: `http://127.0.0.1:${euPort}` } })
    expect(lostOf(await killAndRestart(eu, startUs, TOKENS))).toEqual([])
    expect(line.brokenCount).toBeGreaterThan(0)
  })

  it('in networks of their own, with delay and loss between them', LIMITS, async ({ skip, annotate }) => {
    skip(withoutIp !== undefined, withoutIp)
    const made = makeNamespaces()
    if (typeof made === 'string') return skip(`this machine allows no network namespaces: ${made}`)
    closers.push(() => made.remove())
    if (made.withoutNetem !== undefined) {
      await annotate(`the line between the namespaces is a good one: ${made.withoutNetem}`)
      process.stderr.write(`two regions: namespaces without delay and loss: ${made.withoutNetem}\n`)
    }
    const [near, far] = made.sides
    const [euPort, usPort] = [18_080, 18_081]
    const us = { name: 'us', url: `http://${far.host}:${usPort}` }
    const eu = await start({ ...EU, namespace: near, port: euPort, peer: us })
    const peer = { name: 'eu', url: `http://${near.host}:${euPort}` }
    const startUs = () => start({ ...US, namespace: far, port: usPort, peer })
    expect(lostOf(await killAndRestart(eu, startUs, TOKENS))).toEqual([])
  })
})
