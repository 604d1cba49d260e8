import { existsSync, globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** Recipes name code that is there: files in links and in commands. A word in capitals stands for a name of your own. */
const ROOT = new URL('../', import.meta.url)
const FOLDERS = 'src|test|bench|docs|scripts|scenarios|deploy|examples'
const NAMED = new RegExp(`(?<![\\w./-])(?:\\.\\./)*((?:${FOLDERS})/[\\w./-]+\\.(?:ts|mjs|md|ya?ml|json|py))`, 'g')
const PLACEHOLDER = /[A-Z]{2}/

const missingFiles = (text: string): string[] =>
  [...text.matchAll(NAMED)]
    .map((match) => match[1]!)
    .filter((path) => !PLACEHOLDER.test(path.replace('README', '')) && !existsSync(new URL(path, ROOT)))

/** One recipe for each way to extend Spillway. */
const EXTENSIONS = [
  'limit',
  'rung',
  'fairness-order',
  'scorer',
  'backend',
  'screen',
  'journal-entry',
  'actuator',
  'embedder',
]

describe('recipes', () => {
  const pages = globSync('docs/recipes/*.md', { cwd: ROOT })

  it.each(pages)('%s names files that are there', (page) => {
    expect(missingFiles(readFileSync(new URL(page, ROOT), 'utf8'))).toEqual([])
  })

  it('is found wrong when a file is not there', () => {
    expect(
      missingFiles('see `src/policy/no-such.ts` and `npx vitest run test/none.test.ts src/policy/limits/limit.ts`'),
    ).toEqual(['src/policy/no-such.ts', 'test/none.test.ts'])
    expect(missingFiles('`src/policy/limits/NAME.ts`, [a](../../src/base/none.ts)')).toEqual(['src/base/none.ts'])
  })

  it.each(EXTENSIONS)('has a recipe for a new %s, with the tests to run', (extension) => {
    const page = pages.find((path) => new RegExp(`/add-an?-${extension}\\.md$`).test(path))
    expect(page).toBeDefined()
    expect(readFileSync(new URL(page!, ROOT), 'utf8')).toMatch(/\b(vitest run|test\/contract)\b/)
    expect(readFileSync(new URL('docs/recipes/README.md', ROOT), 'utf8')).toContain(`(${page!.split('/').at(-1)})`)
  })
})
