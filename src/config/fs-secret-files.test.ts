import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { ConfigError } from './config-error.ts'
import { readSecretFile } from './fs-secret-files.ts'
import { buildConfig } from './load.ts'
import { redacted } from './redact.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-secrets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function put(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const tree = (more: object = {}) => ({
  models: [{ name: 'm' }],
  pools: [{ model: 'm', backend: { kind: 'http-openai', url: 'http://gpu/v1', ...more } }],
  tenants: [{ id: 'a', keys: [] }],
})

const load = (given: object = tree(), env: Record<string, string> = {}) =>
  buildConfig({ path: join(folder, 'spillway.yaml'), tree: given as never, lineOf: () => undefined }, env)

function problemsOf(given: object, env: Record<string, string> = {}): readonly string[] {
  try {
    load(given, env)
    return []
  } catch (error) {
    return (error as ConfigError).problems
  }
}

const keyIn = (config: ReturnType<typeof load>) => (config.pools[0]!.backend as { apiKey?: string }).apiKey

describe('a secret in a file', () => {
  it('is a variable of ours, or one that apiKeyEnv names, without the line break at its end', () => {
    const url = put('database-url', 'postgres://u:pw@db/x\n')
    const key = put('key', 'sk-upstream\r\n')
    const config = load(tree({ apiKeyEnv: 'VLLM_KEY' }), { DATABASE_URL_FILE: url, VLLM_KEY_FILE: key })
    expect([config.store.url, keyIn(config)]).toEqual(['postgres://u:pw@db/x', 'sk-upstream'])
    expect(config.secretFiles).toEqual([
      { name: 'store.url', path: url },
      { name: 'pools.0.backend.apiKey', path: key },
    ])
  })

  it('is a setting of the file, by a path that is relative to it', () => {
    put('redis', 'hush')
    put('pool', 'sk-pool')
    const config = load({
      ...tree({ apiKey: { file: 'pool' } }),
      sharing: { redis: { url: 'redis://r', password: { file: 'redis' } } },
    })
    expect([config.sharing.redis.password, keyIn(config)]).toEqual(['hush', 'sk-pool'])
    expect(config.secretFiles?.map(({ name }) => name)).toEqual(['pools.0.backend.apiKey', 'sharing.redis.password'])
  })

  it('leaves a variable alone whose _FILE is a setting itself', () => {
    const path = put('redis-2', 'hush')
    const config = load(tree(), { SPILLWAY_SHARING_REDIS_URL: 'redis://r', SPILLWAY_SHARING_REDIS_PASSWORD_FILE: path })
    expect(config.sharing.redis).toMatchObject({ passwordFile: path })
    expect(config.secretFiles).toEqual([])
  })

  it('does not make a block of every setting called file', () => {
    expect(problemsOf({ ...tree(), store: { path: { file: 'x' } } })[0]).toMatch(/store\.path is/)
  })

  it('is not printed', () => {
    const config = load(tree({ apiKey: { file: put('pool-2', 'sk-hidden') } }))
    expect(JSON.stringify(redacted(config))).not.toContain('sk-hidden')
  })
})

describe('a file that cannot be taken', () => {
  it('is named, with what to do, and nothing of it is told', () => {
    mkdirSync(join(folder, 'a-folder'), { recursive: true })
    expect(problemsOf(tree(), { DATABASE_URL_FILE: join(folder, 'none') })).toEqual([
      `DATABASE_URL_FILE names ${join(folder, 'none')}, which cannot be read (ENOENT).`,
    ])
    expect(problemsOf(tree(), { DATABASE_URL_FILE: join(folder, 'a-folder') })[0]).toContain('EISDIR')
    expect(problemsOf(tree(), { DATABASE_URL_FILE: put('empty', '\n') })[0]).toContain('which is empty')
    expect(problemsOf(tree({ apiKeyEnv: 'K' }), { K_FILE: join(folder, 'none') })[0]).toContain('ENOENT')
    expect(problemsOf(tree({ apiKey: { file: 'none' } }))).toEqual([
      expect.stringMatching(/pools\[0\]\.backend\.apiKey is in .*none, which cannot be read \(ENOENT\)/),
    ])
    const two = { DATABASE_URL: 'postgres://a/b', DATABASE_URL_FILE: put('u', 'postgres://a/c') }
    expect(problemsOf(tree(), two)).toEqual(['DATABASE_URL and DATABASE_URL_FILE are both set. Keep one of them.'])
    const wrong = problemsOf(tree(), { DATABASE_URL_FILE: put('wrong', 'mysql://u:tell-nobody@h/x') })
    expect(wrong[0]).toMatch(/^DATABASE_URL \(store\.url\) is/)
    expect(wrong.join()).not.toContain('tell-nobody')
  })

  it('is too long: it is no secret', () => {
    expect(readSecretFile(put('long', 'x'.repeat(65_537)))).toEqual({
      problem: 'has 65537 bytes, more than a secret has',
    })
    expect(readSecretFile(put('longest', 'x'.repeat(65_536)))).toEqual({ value: 'x'.repeat(65_536) })
  })

  it('has a name that is nearly ours', () => {
    const [problem] = problemsOf(tree(), { SPILLWAY_SHARING_REDIS_URI_FILE: '/x' })
    expect(problem).toBe(
      'SPILLWAY_SHARING_REDIS_URI_FILE (environment) is not a setting. Did you mean SPILLWAY_SHARING_REDIS_URL_FILE?',
    )
  })
})
