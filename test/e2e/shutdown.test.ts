import { describe, expect, it } from 'vitest'
import { EndingServers, ready } from '../support/ending-server.ts'
import { eventually } from '../support/eventually.ts'
import { dechunked, framesIn, textIn } from '../support/sse-frames.ts'

/** How the process ends on a signal; `shutdown.long.test.ts` ends it in other ways, and has starts that fail. */

const servers = new EndingServers()

describe('SIGTERM', () => {
  // A request that is begun before the signal and ended after it has all the time that a busy machine takes for that.
  const running = servers.useServer({ headersTimeoutMs: 120_000, requestTimeoutMs: 120_000, shutdownGraceMs: 120_000 })

  it('turns readiness off, stops accepting, and lets a stream finish', async () => {
    const { child, address } = running()
    const stream = await servers.startStream(address)
    await ready(address)
    // A question that has begun before the signal and ends after it.
    const probe = servers.connect(address).send('GET /health/ready HTTP/1.1\r\nhost: x\r\n')
    const idle = servers.connect(address).send('GET /health/ready HTTP/1.1\r\nhost: x\r\n\r\n')
    await idle.until('it was ready', (received) => received.startsWith('HTTP/1.1 200'))

    child.signal('SIGTERM')
    await idle.closed()
    await eventually('no connection is accepted', () => servers.isRefused(address))
    probe.send('\r\n')
    await probe.until('it is not ready', (received) => received.startsWith('HTTP/1.1 503'))
    expect(probe.received).toContain('shutting down')
    expect(child.exitCode).toBeUndefined()

    servers.openGate()
    expect(await child.exited()).toBe(0)
    const frames = framesIn(dechunked(stream.received))
    expect(textIn(frames)).toBe('One half, the other half.')
    expect(child.err).not.toContain('    at ')
  })
})
