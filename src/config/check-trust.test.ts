import { describe, expect, it } from 'vitest'
import { checkTrust } from './check-trust.ts'
import { parseConfigFile } from './fs-config-file.ts'
import { buildConfig } from './load.ts'

const problemsOf = (backend: object): string[] =>
  checkTrust({ kind: 'http-openai', auth: 'bearer', engine: 'auto', dialects: [], ...backend } as never, []).map(
    ({ path, text }) => `${path.join('.')} ${text}`,
  )

describe('a credential', () => {
  it.each([{ file: '/t' }, { command: ['gcloud'] }, { metadata: 'google' }])('has one source: %j', (credential) => {
    expect(problemsOf({ credential })).toEqual([])
    expect(problemsOf({ credential: { ...credential, file: '/t', command: ['x'] } })).toEqual([
      'credential has no source, or several. Give it file, command, metadata or accessKeyId',
    ])
    expect(problemsOf({ credential, apiKeyEnv: 'K' })).toEqual([
      'credential and a key are both given. Remove one of them',
    ])
  })

  it('from nowhere is none', () => {
    expect(problemsOf({ credential: {} })).toEqual([expect.stringMatching(/^credential has no source/)])
  })
})

describe('SageMaker', () => {
  const engine = 'sagemaker'

  it.each([
    [{ credential: { metadata: 'aws' } }, []],
    [{ credential: { accessKeyId: 'AKIA' }, apiKeyEnv: 'K' }, []],
    [{}, [/^engine is sagemaker, whose calls are signed/]],
    [{ credential: { accessKeyId: 'AKIA' } }, [/^credential\.accessKeyId has no secret/]],
    [{ credential: { metadata: 'aws' }, dialects: ['responses'] }, [/^dialects are not for sagemaker/]],
  ])('is signed, and has one path: %j', (backend, wanted) => {
    expect(problemsOf({ engine, ...backend })).toEqual(wanted.map((pattern) => expect.stringMatching(pattern)))
  })

  it('alone takes an access key', () => {
    expect(problemsOf({ credential: { accessKeyId: 'AKIA' }, apiKeyEnv: 'K' })).toEqual([
      expect.stringMatching(/^credential\.accessKeyId signs calls of SageMaker alone/),
    ])
  })

  it('has no endpoints to pass through to', () => {
    const backend = 'kind: http-openai, engine: sagemaker, credential: { metadata: aws }, url: "https://a.example"'
    const yaml = `tenants: [{ id: a, keys: [{ id: k, hash: "sha256:${'ab'.repeat(32)}" }] }]
models: [{ name: m, transit: [rerank] }]
pools: [{ model: m, backend: { ${backend} } }]`
    expect(() => buildConfig(parseConfigFile('s.yaml', yaml), {}, {})).toThrow(
      'is sagemaker, which has no rerank to pass through to',
    )
    expect(() => buildConfig(parseConfigFile('s.yaml', yaml.replace('transit: [rerank]', '')), {}, {})).not.toThrow()
  })
})
