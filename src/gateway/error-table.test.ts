import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { drawScenario } from '../../test/laws/draw-scenario.ts'
import { journalOf } from '../../test/support/simulated.ts'
import { readTree } from '../../test/support/tidy-tree.ts'
import { usToSeconds } from '../base/clock.ts'
import type { Blame } from '../domain/outcome.ts'
import {
  challengeOf,
  ERROR_TABLE,
  type ErrorCode,
  type ErrorRow,
  statusOf,
  statusOfFault,
  wireCode,
} from './error-table.ts'

const rows = Object.entries(ERROR_TABLE) as [ErrorCode, ErrorRow][]
const tree = readTree(fileURLToPath(new URL('../..', import.meta.url)))

/** Whoever can be to blame, by the row. */
const blamesOf = ({ blame }: ErrorRow): readonly Blame[] =>
  blame === 'tenant-or-platform' ? ['tenant', 'platform'] : [blame]

describe('the rows', () => {
  it.each(rows)('%s has a status that a client can act on, and that fits its blame', (code, row) => {
    for (const blame of blamesOf(row)) {
      const status = statusOf({ code, blame })
      // 408 would be tried again at once.
      expect([400, 401, 403, 404, 405, 409, 413, 415, 417, 429, 431, 500, 502, 503, 504]).toContain(status)
      expect(status === 429).toBe(blame === 'tenant')
      expect(status >= 500).toBe(blame === 'platform')
    }
    expect(row.advice).toMatch(/^[A-Z].*[.…]$/)
  })

  it('say when to come back for everything that passes, and never for what is wrong with the request', () => {
    const passing = rows.filter(([, { retryAfter }]) => retryAfter !== 'never')
    expect(passing.filter(([, { blame }]) => blame === 'request')).toEqual([])
    const lasting = rows.filter(([, { retryAfter, blame }]) => retryAfter === 'never' && blame !== 'request')
    expect(lasting.map(([code]) => code)).toEqual(['replica-denied', 'deadline-passed'])
  })

  it('a fault without a code is a 400', () => {
    expect(statusOfFault({ code: null, message: 'No.', param: null })).toBe(400)
    expect(statusOfFault({ code: 'unknown-url', message: 'No.', param: null })).toBe(404)
  })
})

describe('the challenge of a 401', () => {
  it('asks for a bearer, and calls only what was a credential an invalid one', () => {
    const wrong = 'Bearer error="invalid_token"'
    const told = rows.flatMap(([code, { status }]) => (status === 401 ? [[code, challengeOf(code)[1]]] : []))
    expect(Object.fromEntries(told)).toEqual({
      'invalid-api-key': 'Bearer',
      'invalid-token': wrong,
      'key-expired': wrong,
      'key-not-yet-valid': wrong,
    })
  })
})

describe('the sources', () => {
  /** Types and the table name every code; what counts is who says it. */
  const declarations = [
    'src/gateway/error-table.ts',
    'src/gateway/fleet-admin.ts',
    'src/wire/openai-error.ts',
    'src/domain/outcome.ts',
  ]
  const sources = tree.paths.filter((path) => /^src\/.*(?<!\.test)\.ts$/.test(path))
  const speakers = sources.filter((path) => !declarations.includes(path) && !path.startsWith('src/load/'))
  const code = speakers.map((path) => tree.text(path)).join('\n')

  it('say every code of the table somewhere', () => {
    const isSaid = (name: string): boolean =>
      code.includes(`'${name}'`) || (name.startsWith('no-such-') && code.includes('`no-such-${'))
    expect(rows.map(([name]) => name).filter((name) => !isSaid(name))).toEqual([])
  })

  it('turn no other string into a code: the load generator alone reads codes of other servers', () => {
    const cast = /\bas (unknown as )?(RefusalCode|FaultCode|AdminCode|KeyCode|CorpusCode|ErrorCode|(Told)?Refusal)\b/
    expect('{ code: word as RefusalCode }').toMatch(cast)
    expect(sources.filter((path) => cast.test(tree.text(path)))).toEqual(['src/load/load-seen.ts'])
  })
})

describe('simulated runs', () => {
  /** Two drawn overloads that refuse for thirteen reasons between them. */
  const SEEDS = [23, 41]

  it('refuse as the table says: whose fault, and whether to come back', { timeout: 60_000 }, async () => {
    const seen = new Set<ErrorCode>()
    for (const seed of SEEDS) {
      const { entries } = await journalOf(drawScenario(seed), { seed })
      for (const entry of entries) {
        if (entry.kind !== 'settled' || entry.refusal === undefined) continue
        const { code, blame, retryAfterUs } = entry.refusal
        seen.add(code)
        const { retryAfter, ...row } = ERROR_TABLE[code]
        expect(blamesOf({ retryAfter, ...row }), `${code}: blame`).toContain(blame)
        if (retryAfter === 'never') expect(retryAfterUs, `${code}: never`).toBeUndefined()
        else if (typeof retryAfter === 'number') expect(retryAfterUs, `${code}: fixed`).toBe(retryAfter)
        else if (retryAfter !== 'budget') expect(retryAfterUs, `${code}: ${retryAfter}`).toBeGreaterThan(0)
      }
    }
    expect(seen.size).toBeGreaterThanOrEqual(10)
  })
})

describe('docs/operations/errors.md', () => {
  const page = readFileSync(new URL('../../docs/operations/errors.md', import.meta.url), 'utf8')
  /** The columns of each table: code, status, to blame, Retry-After, when, what to do. */
  const documented = page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, name = '', status = '', blame = '', retryAfter = '']) => ({
      name: name.replaceAll('`', ''),
      statuses: status.split(' or ').map(Number),
      blames: blame.split(' or '),
      retryAfter,
    }))

  it('has a row for every code, with status, blame and time to come back, and none for what is gone', () => {
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name)
    const declared = rows.map(([name, row]) => ({
      name: wireCode(name),
      statuses: blamesOf(row).map((blame) => statusOf({ code: name, blame })),
      blames: blamesOf(row),
      retryAfter: typeof row.retryAfter === 'number' ? `${usToSeconds(row.retryAfter)} s` : row.retryAfter,
    }))
    expect(documented.toSorted(byName)).toEqual(declared.toSorted(byName))
  })
})
