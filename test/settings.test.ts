import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { asNode } from '../src/config/explain.ts'
import { ConfigSchema } from '../src/config/schema.ts'
import { settings } from '../src/config/settings.ts'

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

describe('environment names', () => {
  it('are unique and well formed', () => {
    const names = settings.flatMap((setting) => setting.env ?? [])
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[A-Z][A-Z0-9_]*$/)
  })
})
