import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
// @ts-expect-error -- a script without types
import { PAGE_PATH, scenarioFormat, withFormat } from '../scripts/scenario-format.mjs'
import { parseConfigFile } from '../src/config/fs-config-file.ts'
import { checkScenario } from '../src/sim/scenario/fs-scenario.ts'

const page = readFileSync(PAGE_PATH as string, 'utf8')

it('the page has the format as the schema has it; if not: npm run scenario-format', () => {
  expect(page).toBe((withFormat as (page: string) => string)(page))
})

it('every field is explained', () => {
  const rows = (scenarioFormat as () => string)()
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  expect(rows.length).toBeGreaterThan(50)
  expect(rows.filter((row) => /\|\s*\|$/.test(row))).toEqual([])
})

it('the example on the page is good', () => {
  const [, yaml = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? []
  const file = parseConfigFile('example.yaml', yaml)
  expect(checkScenario(file, file.tree).name).toBe('two-tenants')
})
