import { expect, it } from 'vitest'
import { testTree } from '../../test/support/start-platform.ts'
import { buildConfig } from './load.ts'

const load = (server: Record<string, unknown>) =>
  buildConfig({ path: 'test.yaml', tree: testTree({ server }), lineOf: () => undefined }, {}).server

it('a front door without settings has HTTP/2 and nothing else', () => {
  expect(load({})).toMatchObject({
    http2: true,
    streamsMax: 1_000,
    aheadBytesMax: 65_536,
    proxyProtocolFrom: [],
    cors: { origins: [], headers: ['*'] },
    tls: { certificates: [], minVersion: 'TLSv1.2' },
  })
})

it.each([
  [{ proxyProtocolFrom: ['proxy.local'] }, 'is no address range'],
  [{ proxyProtocolFrom: ['0.0.0.0/0'] }, 'trusts everybody'],
  [{ tls: { clientCaFile: 'ca.pem' } }, 'there is no TLS'],
  [{ cors: { origins: ['https://app.example/'] } }, 'server.cors.origins'],
  [{ cors: { origins: ['app.example'] } }, 'an origin such as https://app.example'],
  [{ cors: { origins: ['*'], headers: ['x y'] } }, 'the name of a header'],
  [{ headersTimeoutMs: 2_000, requestTimeoutMs: 1_999 }, 'server.requestTimeoutMs'],
])('%j is refused', (server, says) => expect(() => load(server)).toThrow(says))
