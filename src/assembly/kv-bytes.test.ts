import { expect, it } from 'vitest'
import { buildConfig } from '../config/load.ts'
import { toPools } from '../config/to-domain.ts'
import { kvBytesPerTokenOf } from './kv-bytes.ts'

const bytesOf = (backend: object, kind = 'chat'): number | undefined => {
  const tree = { models: [{ name: 'm', kind }], pools: [{ model: 'm', backend }], tenants: [{ id: 'a' }] }
  const config = buildConfig({ path: 'test.yaml', tree, lineOf: () => undefined }, {})
  return kvBytesPerTokenOf(toPools(config)[0]!)
}

it.each([
  ['a simulated 8B', { kind: 'simulated', profile: 'h100-llama-8b' }, 131_072],
  ['a simulated 1B on a slice', { kind: 'simulated', profile: 'h200-llama-1b+mig-2g' }, 32_768],
  ['GPUs that differ, of one model', { kind: 'simulated', profiles: ['a100-llama-8b', 'h100-llama-8b'] }, 131_072],
  ['an engine whose profile is hidden', { kind: 'simulated', profile: 'h100-llama-8b', hidden: true }, undefined],
  [
    'an engine with a declared profile',
    { kind: 'http-openai', url: 'http://engine/v1', profile: 'h100-llama-8b' },
    131_072,
  ],
  ['an engine of which nothing is declared', { kind: 'http-openai', url: 'http://engine/v1' }, undefined],
])('a token takes what %s needs for it', (_, backend, bytes) => expect(bytesOf(backend)).toBe(bytes))

it('is nothing for models without keys and values', () => {
  expect(bytesOf({ kind: 'simulated', profile: 'h100-llama-1b' }, 'embedding')).toBeUndefined()
})
