import { describe, expect, it } from 'vitest'
import { ConfigError } from './config-error.ts'
import { buildConfig } from './load.ts'

const problemsOf = (lists: unknown): readonly string[] => {
  const tree = { tenants: [{ id: 'a', keys: [] }], prices: lists }
  try {
    buildConfig({ path: 'test.yaml', tree, lineOf: () => undefined }, {})
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
}
const listOf = (more: object) => [{ version: 'v1', models: [{ model: 'large', inputUsd: 1 }], ...more }]

describe('price lists of a configuration', () => {
  it('are taken with a day or an hour', () => {
    expect(problemsOf(listOf({ from: '2026-03-01' }))).toEqual([])
    expect(problemsOf(listOf({ from: '2026-03-01T12:00Z' }))).toEqual([])
  })

  it('name a day that there is', () => {
    expect(problemsOf(listOf({ from: '2026-13-45' })).join()).toContain('no day of the calendar')
    expect(problemsOf(listOf({ from: 'yesterday' })).join()).toContain('a day such as 2026-03-01')
  })

  it('name each model once', () => {
    expect(problemsOf(listOf({ models: [{ model: 'large' }, { model: 'large' }] })).join()).toContain('a second time')
  })
})
