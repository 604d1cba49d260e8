import { expect, it } from 'vitest'
import { ConfigError } from './config-error.ts'
import { parseConfigFile } from './fs-config-file.ts'
import { buildConfig } from './load.ts'

function problemsOf(peer: string): readonly string[] {
  const text = `tenants: [{ id: a, keys: [] }]\nregions:\n  local: eu\n  peers:\n    - { region: us, apiKey: k, ${peer} }`
  try {
    buildConfig(parseConfigFile('s.yaml', text), {})
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

const ONE_OF_TWO =
  's.yaml:5: regions.peers[0] needs the address of its gateway in url, or those of several gateways in urls. Set one of the two.'

it.each([
  ['one address', 'url: "http://us/v1"', []],
  ['several', 'urls: ["http://us-1/v1", "http://us-2/v1"]', []],
  ['both kinds', 'url: "http://us/v1", urls: ["http://us-2/v1"]', [ONE_OF_TWO]],
  ['no address', 'roundTripMs: 80', [ONE_OF_TWO]],
  [
    'the same gateway twice',
    'urls: ["http://us/v1", "http://us/v1"]',
    [
      's.yaml:5: regions.peers[0].urls[1] is "http://us/v1", which is a gateway of the region already. Give each its own.',
    ],
  ],
  [
    'an address that no gateway may call',
    'urls: ["http://169.254.169.254/v1"]',
    [
      's.yaml:5: regions.peers[0].urls[0] is a link-local address. Set it to an engine’s address, or allow this one with upstreams.hostsAllowed.',
    ],
  ],
])('a region with %s', (_, peer, problems) => expect(problemsOf(peer)).toEqual(problems))

it('has a bound on its gateways', () => {
  const urls = Array.from({ length: 17 }, (_, i) => `"http://us-${i}/v1"`)
  expect(problemsOf(`urls: [${urls.slice(1).join(', ')}]`)).toEqual([])
  expect(problemsOf(`urls: [${urls.join(', ')}]`)).toEqual([expect.stringContaining('regions.peers[0].urls')])
})
