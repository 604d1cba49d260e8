import { describe, expect, it } from 'vitest'
import { parseConfigFile } from './fs-config-file.ts'
import { buildConfig } from './load.ts'

function warningsOf(...pools: readonly string[]): readonly string[] {
  const yaml = `
models: [{ name: a }, { name: b }, { name: c }]
tenants: [{ id: t }]
pools: [${[...pools, '{ model: c, backend: { kind: simulated } }'].join(', ')}]
`
  return buildConfig(parseConfigFile('s.yaml', yaml), {}).warnings
}

const at = (model: string, ...urls: readonly string[]) =>
  `{ model: ${model}, backend: { kind: http-openai }, replicas: ${JSON.stringify(urls)} }`

describe('an engine in two pools', () => {
  it('is warned of, with the pools and what to do', () => {
    expect(
      warningsOf(at('a', 'http://gpu-1:8000/v1', 'http://gpu-2:8000/v1'), at('b', 'http://gpu-2:8000/v1')),
    ).toEqual([
      'pools a-local and b-local share the engine at http://gpu-2:8000/v1, and each takes all of its room for its own. ' +
        'Give each pool its own engine, or divide the room between them with limit: { kind: fixed, concurrencyMax }.',
    ])
  })
  it('is found however its URL is written, and told without its password', () => {
    const one = '{ model: a, backend: { kind: http-openai, url: "http://me:secret@GPU-1:80/v1/" } }'
    const [line] = warningsOf(one, at('b', 'http://gpu-1/v1'))
    expect(line).toContain('pools a-local and b-local share the engine at http://gpu-1/v1,')
  })
  it('is one line for three pools', () => {
    const more = '{ id: more, model: b, backend: { kind: http-openai, url: "http://gpu-1/v1" } }'
    const lines = warningsOf(at('a', 'http://gpu-1/v1'), at('b', 'http://gpu-1/v1'), more)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('pools a-local, b-local and more share')
  })
  it('is no matter for one pool, for different engines of one host, or for simulated ones', () => {
    expect(warningsOf(at('a', 'http://gpu-1/v1', 'http://gpu-1/v1'), at('b', 'http://gpu-2/v1'))).toEqual([])
    expect(warningsOf(at('a', 'http://gpu-1:8000/v1'), at('b', 'http://gpu-1:8001/v1'))).toEqual([])
    expect(warningsOf(at('a', 'http://gpu-1/chat/v1'), at('b', 'http://gpu-1/embed/v1'))).toEqual([])
  })
})
