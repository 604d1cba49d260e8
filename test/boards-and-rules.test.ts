import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { makeProcessSampler } from '../src/telemetry/live-process.ts'
import { Metrics } from '../src/telemetry/metrics.ts'
import { missing, pathOf } from './support/installed.ts'

interface BoardsScript {
  readonly boardFiles: () => (readonly [path: string, text: string])[]
}

const boards = new URL('../scripts/boards.mjs', import.meta.url).href
const { boardFiles } = (await import(boards)) as BoardsScript

/** Boards and rules name what there is: metrics of ours with their labels, pages that exist. */
interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly annotations?: { readonly runbook?: string; readonly summary?: string }
  readonly labels?: { readonly severity?: string }
}

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const rulesText = read('deploy/prometheus/spillway.rules.yaml')
const rules = (parse(rulesText) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules)
const recorded = new Set(rules.flatMap(({ record }) => (record === undefined ? [] : [record])))
const families = new Metrics({ version: '0', nodeVersion: '0', sampleProcess: makeProcessSampler() }).families()
const labelsOf = new Map<string, readonly string[]>(
  families.flatMap(({ name, labelNames }) =>
    [name, `${name}_bucket`, `${name}_count`, `${name}_sum`].map((each) => [each, labelNames] as const),
  ),
)

/** Labels that Prometheus itself adds, and a histogram's. */
const COMMON_LABELS = ['le', 'job', 'instance']

/** Names in an expression that are not there, with the labels that they are asked for. */
function unknownIn(expr: string): string[] {
  const bare = expr.replaceAll(/"[^"]*"/g, '""')
  const names = [...bare.matchAll(/\b(?:spillway[_:]|process_)[\w:]*/g)].map(([name]) => name)
  const unknown = names.filter((name) => !labelsOf.has(name) && !recorded.has(name))
  const known = new Set([...names.flatMap((name) => labelsOf.get(name) ?? []), ...COMMON_LABELS])
  if (names.some((name) => recorded.has(name))) return unknown
  const asked = [...bare.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(',').map((s) => s.trim()))
  const matched = [...bare.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*""/g)].map(([, label = '']) => label)
  return [...unknown, ...[...asked, ...matched].filter((label) => !known.has(label))]
}

const expressions = boardFiles().flatMap(([path, text]) =>
  (JSON.parse(text) as { panels: { title: string; targets: { expr: string }[] }[] }).panels.flatMap((panel) =>
    panel.targets.map(({ expr }) => [`${path}: ${panel.title}`, expr] as const),
  ),
)

describe('boards', () => {
  it.each(boardFiles())('%s is what `npm run boards` writes', (path, text) => {
    expect(read(path) === text, 'run `npm run boards`').toBe(true)
  })

  it.each(expressions)('%s names metrics that there are', (_where, expr) => {
    expect(unknownIn(expr)).toEqual([])
  })
})

describe('rules', () => {
  it.each(rules.map((rule) => [rule.alert ?? rule.record ?? '', rule.expr]))(
    '%s names what there is',
    (_name, expr) => {
      expect(unknownIn(expr)).toEqual([])
    },
  )

  it('notices a metric and a label that there are not', () => {
    expect(unknownIn('rate(spillway_requests[5m])')).toEqual(['spillway_requests'])
    expect(unknownIn('sum by (colour) (spillway_pool_pressure{shade="x"})')).toEqual(['colour', 'shade'])
  })

  it.each(rules.filter(({ alert }) => alert !== undefined))(
    '$alert has a runbook and says how urgent it is',
    (rule) => {
      expect(['page', 'ticket']).toContain(rule.labels?.severity)
      const path = rule.annotations?.runbook ?? ''
      expect(existsSync(new URL(`../${path}`, import.meta.url)), path).toBe(true)
      expect(read(path)).toContain(`\`${rule.alert}\``)
      expect(read('docs/operations/alerts.md')).toContain(`\`${rule.alert}\``)
    },
  )

  const why = missing('promtool')
  it.skipIf(why !== undefined)(
    `promtool reads every expression of the boards${why === undefined ? '' : `: ${why}`}`,
    () => {
      const dir = mkdtempSync(join(tmpdir(), 'spillway-boards-'))
      try {
        const quoted = expressions.map(([, expr], i) => ({
          record: `x${i}`,
          expr: expr.replaceAll('$__rate_interval', '1m'),
        }))
        writeFileSync(join(dir, 'rules.yaml'), JSON.stringify({ groups: [{ name: 'boards', rules: quoted }] }))
        const run = spawnSync(pathOf('promtool'), ['check', 'rules', join(dir, 'rules.yaml')], { encoding: 'utf8' })
        expect(run.status, run.stdout + run.stderr).toBe(0)
      } finally {
        rmSync(dir, { recursive: true })
      }
    },
  )
})
