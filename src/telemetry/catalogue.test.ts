import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { missing } from '../../test/support/installed.ts'
import { makeProcessSampler } from './live-process.ts'
import { Metrics } from './metrics.ts'

const page = readFileSync(new URL('../../docs/operations/metrics.md', import.meta.url), 'utf8')
const families = new Metrics({ version: '0', nodeVersion: '0', sampleProcess: makeProcessSampler() }).families()

interface Row {
  readonly name: string
  readonly kind: string
  readonly labels: readonly string[]
  readonly unit: string
  readonly meaning: string
  readonly alertOn: string
}

/** Tables of the page: a cell ends at a bar that is not escaped. */
const rows: Row[] = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
    const [, name = '', kind = '', labels = '', unit = '', meaning = '', alertOn = ''] = cells
    return {
      name: inCode(name)[0] ?? '',
      kind,
      labels: inCode(labels),
      unit,
      meaning,
      alertOn: inCode(alertOn)[0] ?? '',
    }
  })

function inCode(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string)
}

describe('docs/operations/metrics.md', () => {
  it('has a row for every metric, with its type and labels, and none for what is gone', () => {
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name)
    const documented = rows.map(({ name, kind, labels }) => ({ name, kind, labels })).toSorted(byName)
    const declared = families
      .map(({ name, kind, labelNames }) => ({ name, kind, labels: [...labelNames] }))
      .toSorted(byName)
    expect(documented).toEqual(declared)
  })

  it('says of each what it means and in which unit, and the unit is in the name', () => {
    for (const { name, unit, meaning } of rows) {
      expect(meaning.length, `meaning of ${name}`).toBeGreaterThan(10)
      expect(unit, `unit of ${name}`).not.toBe('')
      const base = unit.split(' ')[0] ?? ''
      expect(!['seconds', 'bytes'].includes(base) || name.includes(`_${base}`), `${name} names its unit`).toBe(true)
    }
  })

  it('names nothing that does not exist, in its queries and its text', () => {
    const histograms = families.filter((family) => family.kind === 'histogram').map((family) => family.name)
    const suffixed = histograms.flatMap((name) => [`${name}_bucket`, `${name}_sum`, `${name}_count`])
    const known = new Set([...families.map((family) => family.name), ...suffixed])
    const named = [...page.matchAll(/\b(?:spillway|process)_[a-z_]+/g)].map((match) => match[0])
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })

  it('alerts with queries that Prometheus understands', ({ skip }) => {
    const why = missing('promtool')
    skip(why !== undefined, why)
    const queries = rows.filter((row) => row.alertOn !== '').map((row) => ({ alert: row.name, expr: row.alertOn }))
    expect(queries.length).toBeGreaterThan(5)
    const folder = mkdtempSync(join(tmpdir(), 'spillway-rules-'))
    const path = join(folder, 'rules.json')
    // JSON is YAML too.
    writeFileSync(path, JSON.stringify({ groups: [{ name: 'catalogue', rules: queries }] }))
    const check = spawnSync('promtool', ['check', 'rules', path], { encoding: 'utf8' })
    rmSync(folder, { recursive: true })
    expect(check).toMatchObject({ status: 0, stderr: '' })
  })
})
