import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { asNode } from '../src/config/explain.ts'
import { parseConfigFile } from '../src/config/fs-config-file.ts'
import { hashKey } from '../src/config/key-hash.ts'
import { buildConfig } from '../src/config/load.ts'
import { ConfigSchema } from '../src/config/schema.ts'
import { settings } from '../src/config/settings.ts'
import { readTree } from './support/tidy-tree.ts'

interface SettingsScript {
  readonly PAGE_PATH: string
  readonly ENV_PATH: string
  settingsPage(): string
  envExample(): string
}

const script = (await import(new URL('../scripts/settings.mjs', import.meta.url).href)) as SettingsScript
const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

describe('the settings page and .env.example', () => {
  it('are as the schema has them (else: npm run settings)', () => {
    expect(read(script.PAGE_PATH)).toBe(script.settingsPage())
    expect(read(script.ENV_PATH)).toBe(script.envExample())
  })
  it('name every setting and every variable', () => {
    const names = settings.map(({ path }) => `\`${path.join('.')}\``)
    const variables = settings.flatMap(({ env }) => (env === undefined ? [] : [`\n# ${env}=`]))
    expect(names.filter((name) => !read(script.PAGE_PATH).includes(name))).toEqual([])
    expect(variables.filter((variable) => !read(script.ENV_PATH).includes(variable))).toEqual([])
  })
  it('say what each is for', () => {
    const nodes = [...settings.map(({ node }) => node), ...Object.values(asNode(ConfigSchema).properties ?? {})]
    expect(nodes.filter((node) => !/^\S.*\.$/.test(node.description ?? ''))).toEqual([])
  })
})

describe('the YAML in the documents', () => {
  const documents = ['README.md', script.PAGE_PATH]
  const examples = documents.flatMap((path) =>
    [...read(path).matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => [path, match[1] ?? ''] as const),
  )
  it('is there', () => expect(examples.length).toBeGreaterThanOrEqual(2))
  it.each(examples)('of %s is a good configuration', (path, yaml) => {
    const text = yaml.replace('sha256:…', hashKey('sk-x'))
    expect(buildConfig(parseConfigFile(path, text), { UPSTREAM_KEY: 'k' }).tenants.length).toBeGreaterThan(0)
  })
})

describe('every setting has a reader', () => {
  /** Exactly these have none yet: a setting that does nothing must not go unnoticed. */
  const UNREAD: readonly string[] = []
  it('outside of config', () => {
    const tree = readTree(fileURLToPath(new URL('..', import.meta.url)))
    // Screens have words of the domain where their settings have words of YAML: their translator is their reader.
    const readers = tree.paths.filter((path) => /^src\/(?!config\/(?!to-screening)).*(?<!\.test)\.ts$/.test(path))
    const code = readers.map((path) => tree.text(path)).join('\n')
    const isRead = (path: readonly string[]) =>
      path.length === 1 || path.slice(-2).every((word) => new RegExp(`\\b${word}\\b`).test(code))
    const unread = settings.filter(({ path, env }) => env !== undefined && !isRead(path))
    expect(unread.map(({ path }) => path.join('.')).sort()).toEqual(UNREAD)
  })
})

describe('environment names', () => {
  it('are unique and well formed', () => {
    const names = settings.flatMap((setting) => setting.env ?? [])
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[A-Z][A-Z0-9_]*$/)
  })
})
