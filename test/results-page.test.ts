import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { renderMarkdown } from '../bench/experiments/kit/render.ts'
import { RESULTS_FOLDER } from '../bench/experiments/kit/result.ts'
import {
  PAGE_PATH,
  README_PATH,
  readmeWithResults,
  resultsPage,
  storedResults,
} from '../bench/experiments/kit/results-page.ts'

describe('the results page', () => {
  it('is as the stored results have it (else: node bench/experiments/write-results-page.ts)', () => {
    expect(readFileSync(PAGE_PATH, 'utf8')).toBe(resultsPage())
  })

  it('stands in the README too, in short', () => {
    expect(readFileSync(README_PATH, 'utf8')).toBe(readmeWithResults())
    for (const { command } of storedResults().filter(({ name }) => name === 'vtc' || name === 'overload')) {
      expect(readmeWithResults()).toContain(command.replace('node bench/experiments/', '').replace(' --record', ''))
    }
  })

  it.each(storedResults().map((result) => [result.name, result] as const))('%s can be repeated', (name, result) => {
    const page = readFileSync(join(RESULTS_FOLDER, `${name}.md`), 'utf8')
    expect(page).toBe(`# ${result.title}\n\n${renderMarkdown(result)}`)
    expect(result.command).toContain(`node bench/experiments/${result.script ?? name}.ts`)
    expect(result.date).toMatch(/^\d{4}-\d{2}-\d{2}$/)
    expect(result.seeds.length).toBeGreaterThan(0)
    for (const { columns, rows } of result.tables) for (const row of rows) expect(row.length).toBe(columns.length)
  })
})
