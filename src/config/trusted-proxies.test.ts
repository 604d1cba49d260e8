import { expect, it } from 'vitest'
import { testTree } from '../../test/support/start-platform.ts'
import { buildConfig } from './load.ts'

const load = (...trustedProxies: string[]) =>
  buildConfig({ path: 'test.yaml', tree: testTree({ server: { trustedProxies } }), lineOf: () => undefined }, {})

it('takes the addresses and ranges of proxies, and none by default', () => {
  expect(load('10.0.0.0/8', '192.0.2.1', 'fd00::/8').server.trustedProxies).toHaveLength(3)
  expect(buildConfig({ path: 'x', tree: testTree(), lineOf: () => undefined }, {}).server.trustedProxies).toEqual([])
})

it.each([
  ['proxy.local', 'is no address range'],
  ['10.1.2.3/8', 'write 10.0.0.0/8'],
  ['0.0.0.0/0', 'trusts everybody'],
  ['::/0', 'trusts everybody'],
])('refuses %s', (text, says) => expect(() => load(text)).toThrow(says))
