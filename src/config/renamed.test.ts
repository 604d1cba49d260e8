import { describe, expect, it } from 'vitest'
import type { ConfigError } from './config-error.ts'
import { parseConfigFile } from './fs-config-file.ts'
import { buildConfig } from './load.ts'

const TENANTS = 'tenants: [{ id: a }]'
const URL = 'postgres://me:secret@db/one'

const load = (yaml: string, env: Record<string, string> = {}) =>
  buildConfig(parseConfigFile('s.yaml', `${TENANTS}\n${yaml}`), env)

function problemsOf(yaml: string, env: Record<string, string> = {}): readonly string[] {
  try {
    load(yaml, env)
    return []
  } catch (error) {
    return (error as ConfigError).problems
  }
}

describe('a setting under its old name', () => {
  it.each([
    ['retrieval.databaseUrl', `retrieval: { databaseUrl: "${URL}" }`, { url: URL }, 'store.url'],
    ['retrieval.dataPath', 'retrieval: { dataPath: there }', { path: 'there' }, 'store.path'],
  ])('%s is read, and the line and the new name are told', (old, yaml, store, name) => {
    const config = load(yaml)
    expect(config.store).toMatchObject(store)
    expect(config.warnings).toEqual([`s.yaml:2: ${old} is called ${name} now.`])
    expect(old.split('.')[1]! in config.retrieval).toBe(false)
  })

  it('is read from the environment too, which wins over the file', () => {
    const { store, warnings } = load('retrieval: { dataPath: there }', { SPILLWAY_RETRIEVAL_DATA_PATH: 'here' })
    expect(store.path).toBe('here')
    expect(warnings.at(-1)).toBe('SPILLWAY_RETRIEVAL_DATA_PATH (environment) is called SPILLWAY_STORE_PATH now.')
    expect(load('', { DATABASE_URL: URL })).toMatchObject({ store: { url: URL }, warnings: [] })
    expect(load('', { SPILLWAY_RETRIEVAL_DATA_PATH: '' }).warnings).toEqual([])
  })

  it('beside the new one is a mistake when they differ, and only then', () => {
    expect(problemsOf('retrieval: { dataPath: there }\nstore: { path: here }')).toEqual([
      's.yaml:2: retrieval.dataPath and store.path are set differently. Keep store.path only.',
    ])
    expect(load('retrieval: { dataPath: there }\nstore: { path: there }').warnings).toHaveLength(1)
    expect(problemsOf('', { SPILLWAY_RETRIEVAL_DATA_PATH: 'there', SPILLWAY_STORE_PATH: 'here' })).toEqual([
      'SPILLWAY_RETRIEVAL_DATA_PATH and SPILLWAY_STORE_PATH (environment) are set differently. Keep SPILLWAY_STORE_PATH only.',
    ])
  })

  it('that is wrong is complained about where it stands, without a password', () => {
    expect(problemsOf('retrieval:\n  databaseUrl: mysql://me:secret@db/one')).toEqual([
      's.yaml:3: retrieval.databaseUrl (store.url) is "mysql://(hidden)@db/one". Set it to an address such as postgres://user:password@host/name.',
    ])
  })

  it('in a section that is no section is left to the check', () => {
    expect(problemsOf('retrieval: 5')).toHaveLength(1)
    expect(problemsOf('store: 5\nretrieval: { dataPath: there }')).toHaveLength(1)
  })
})

it('new names need no words', () => {
  expect(load('store: { path: here }')).toMatchObject({ store: { path: 'here' }, warnings: [] })
})
