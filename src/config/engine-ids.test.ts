import { describe, expect, it } from 'vitest'
import { parseConfigFile } from './fs-config-file.ts'
import { buildConfig } from './load.ts'
import { toPools } from './to-domain.ts'

function loaded(...pools: readonly string[]) {
  const yaml = `
models: [{ name: a }, { name: b }, { name: c, kind: embedding }]
tenants: [{ id: t }]
pools: [${[...pools, '{ id: last, model: c, backend: { kind: simulated } }'].join(', ')}]
`
  return buildConfig(parseConfigFile('s.yaml', yaml), {})
}

/** The engines by pool; every pool's own are `own`. */
function enginesOf(...pools: readonly string[]): Record<string, readonly string[]> {
  const setups = toPools(loaded(...pools)).filter(({ pool }) => pool.id !== 'last')
  return Object.fromEntries(
    setups.map(({ pool }) => [pool.id, pool.replicas.map(({ engineId }) => engineId ?? 'own')] as const),
  )
}

const at = (model: string, ...urls: readonly string[]) =>
  `{ model: ${model}, backend: { kind: http-openai }, replicas: ${JSON.stringify(urls)} }`

describe('an engine in two pools', () => {
  it('is the same address, however it is written, and its name has no password', () => {
    const one = '{ model: a, backend: { kind: http-openai, url: "http://me:secret@GPU-1:80/v1/" } }'
    expect(enginesOf(one, at('b', 'http://gpu-1/v1', 'http://gpu-2/v1'))).toEqual({
      'a-local': ['http://gpu-1/v1'],
      'b-local': ['http://gpu-1/v1', 'http://gpu-2/v1'],
    })
  })

  it('is no longer warned of', () => {
    expect(loaded(at('a', 'http://gpu-1/v1'), at('b', 'http://gpu-1/v1')).warnings).toEqual([])
  })

  it('is another one with another port or path', () => {
    const { 'a-local': a, 'b-local': b } = enginesOf(at('a', 'http://gpu-1:8000/v1'), at('b', 'http://gpu-1:8001/v1'))
    expect(a).not.toEqual(b)
    const byPath = enginesOf(at('a', 'http://gpu-1/chat/v1'), at('b', 'http://gpu-1/embed/v1'))
    expect(byPath['a-local']).not.toEqual(byPath['b-local'])
  })

  it('is two where one pool lists an address twice, each in common with the other pool’s', () => {
    const engines = enginesOf(at('a', 'http://gpu-1/v1', 'http://gpu-1/v1'), at('b', 'http://gpu-1/v1'))
    expect(engines['a-local']).toEqual(['http://gpu-1/v1', 'http://gpu-1/v1#2'])
    expect(engines['b-local']).toEqual(['http://gpu-1/v1'])
  })

  it('is each pool’s own with another name, and at a hosted API', () => {
    const named = (model: string, name: string) =>
      `{ id: ${name}, model: ${model}, engineName: ${name}, backend: { kind: http-openai, url: "http://gpu-1/v1" } }`
    const engines = enginesOf(named('a', 'x'), named('b', 'y'))
    expect(engines['x']).not.toEqual(engines['y'])
    const hosted = (model: string) =>
      `{ model: ${model}, backend: { kind: http-openai, engine: openai, url: "https://api.openai.com/v1" } }`
    expect(enginesOf(hosted('a'), hosted('b'))).toEqual({ 'a-local': ['own'], 'b-local': ['own'] })
  })

  it('is a simulated one where the pools give it the same name, the first with the first', () => {
    const pool = (model: string, replicas: number) =>
      `{ model: ${model}, engineName: gpu, replicas: ${replicas}, backend: { kind: simulated } }`
    const engines = enginesOf(pool('a', 2), pool('b', 1))
    expect(engines['a-local']?.slice(0, 1)).toEqual(engines['b-local'])
    expect(engines['a-local']?.[1]).not.toBe(engines['a-local']?.[0])
    const plain = (model: string) => `{ model: ${model}, backend: { kind: simulated } }`
    expect(enginesOf(plain('a'), plain('b'))).toEqual({ 'a-local': ['own'], 'b-local': ['own'] })
  })
})

describe('pools with an engine in common', () => {
  it('must give it the same limit', () => {
    const limited = (model: string, concurrencyMax: number) =>
      `{ model: ${model}, backend: { kind: http-openai, url: "http://gpu-1/v1" }, limit: { kind: fixed, concurrencyMax: ${concurrencyMax} } }`
    expect(loaded(limited('a', 8), limited('b', 8)).warnings).toEqual([])
    const silent = '{ model: b, backend: { kind: http-openai, url: "http://gpu-1/v1" } }'
    expect(loaded(limited('a', 8), silent).warnings, 'it takes the limit that the engine has').toEqual([])
    expect(() => loaded(limited('a', 8), limited('b', 24))).toThrow(
      /pools\[1\] has another limit than the pool a-local, which names the same engine: .* Make them equal, or give the pools different engineName/s,
    )
  })

  it('must give a simulated one the same backend, and both be of chat models', () => {
    const pool = (model: string, profile: string) =>
      `{ model: ${model}, engineName: gpu, backend: { kind: simulated, profile: ${profile} } }`
    expect(() => loaded(pool('a', 'h100-llama-8b'), pool('b', 'a100-llama-8b'))).toThrow(/has another backend/)
    expect(() => loaded(pool('a', 'h100-llama-8b'), pool('c', 'h100-llama-8b'))).toThrow(/kind of model/)
  })
})
