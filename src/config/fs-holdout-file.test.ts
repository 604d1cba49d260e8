import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ConfigError } from './config-error.ts'
import { loadConfig } from './load.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-holdout-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function load(lines: readonly string[] | undefined) {
  if (lines !== undefined) writeFileSync(join(folder, 'items.jsonl'), lines.join('\n'))
  const path = join(folder, 'spillway.yaml')
  writeFileSync(
    path,
    `tenants: [{ id: t }]
models:
  - { name: m, rollout: { stable: "1", holdout: { file: items.jsonl, items: [{ id: own, prompt: p, expected: e }] } } }
pools: [{ model: m, backend: { kind: simulated } }]
`,
  )
  return loadConfig({ path, env: {} })
}

const problemsOf = (lines: readonly string[] | undefined): string => {
  try {
    load(lines)
    return 'none'
  } catch (error) {
    return error instanceof ConfigError ? error.message : String(error)
  }
}

it('adds the items of a file to those of the configuration', () => {
  const config = load(['{"id":"a","prompt":"?","expected":"x"}', '', '{"id":"b","prompt":"?","pattern":"y+"}'])
  expect(config.models[0]?.rollout?.holdout?.items.map(({ id }) => id)).toEqual(['own', 'a', 'b'])
})

it.each([
  ['a file that is not there', undefined, /holdout\.file is .*items\.jsonl, which cannot be read \(ENOENT\)/],
  ['a line that is no item', ['{"id":"a"}'], /has no item on line 1/],
  ['a line that is not JSON', ['{"id":"a","prompt":"?","expected":"x"}', 'hello'], /has no item on line 2/],
  ['nothing to compare with', ['{"id":"a","prompt":"?"}'], /line 1 that needs `expected` or `pattern`/],
  ['a broken pattern', ['{"id":"a","prompt":"?","pattern":"("}'], /no regular expression/],
])('says what is wrong: %s', (_, lines, message) => {
  expect(problemsOf(lines)).toMatch(message)
})
