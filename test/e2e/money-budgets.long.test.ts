import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { askKnown, spendTwoDollars, treeOf } from '../support/money-budgets.ts'
import { startPlatform } from '../support/start-platform.ts'

/** What was spent is in the ledger of the store, and counts after a restart. */
const folder = mkdtempSync(join(tmpdir(), 'spillway-budgets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a budget of the configuration file', () => {
  it('refuses with 429 what does not fit, shows what is left, and remembers over a restart', {
    timeout: 240_000,
  }, async () => {
    const tree = treeOf([{ usd: 2 }], { store: { path: join(folder, 'db') }, ledger: { enabled: true } })
    const first = await startPlatform(tree)
    try {
      expect(await spendTwoDollars(first.baseURL)).toBeGreaterThan(0)
    } finally {
      await first.close()
    }
    const second = await startPlatform(tree)
    try {
      expect((await askKnown(second.baseURL)).status).toBe(429)
    } finally {
      await second.close()
    }
    const third = await startPlatform({
      ...tree,
      ...treeOf([{ usd: 3 }], { store: tree['store'], ledger: tree['ledger'] }),
    })
    try {
      expect((await askKnown(third.baseURL)).status).toBe(200)
      expect((await askKnown(third.baseURL)).status).toBe(429)
    } finally {
      await third.close()
    }
  })

  it('asks the ledger for an end user when it is first seen, and the first request waits for that', {
    timeout: 240_000,
  }, async () => {
    const ledger = { store: { path: join(folder, 'users') }, ledger: { enabled: true } }
    const tree = treeOf([{ hours: 24, usd: 1, perUser: true }], ledger)
    const first = await startPlatform(tree)
    try {
      expect((await askKnown(first.baseURL, { user: 'ann' })).status).toBe(200)
      expect((await askKnown(first.baseURL, { user: 'ann' })).status).toBe(429)
    } finally {
      await first.close()
    }
    const second = await startPlatform(tree)
    try {
      expect((await askKnown(second.baseURL, { user: 'ann' })).status).toBe(429)
      expect((await askKnown(second.baseURL, { user: 'bob' })).status).toBe(200)
    } finally {
      await second.close()
    }
  })
})
