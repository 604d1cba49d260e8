import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { addCorpus, addModel, PLACES, startWithStore } from '../support/store-errors.ts'

/** What a client and an administrator are told when the embedded store is deleted: 503 and a reason, no place. */

const closers: Array<() => unknown> = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

describe('an embedded folder that is deleted while the server runs', () => {
  it('is a 503 with a reason and no path, or a new store; never a 500', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-lost-'))
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const path = join(folder, 'store')
    const platform = await startWithStore({ path })
    closers.push(() => platform.close())
    expect((await addCorpus(platform, 'before')).status).toBe(200)
    for (const add of [addCorpus, addModel]) {
      rmSync(path, { recursive: true, force: true })
      const statuses: number[] = []
      await eventually(
        'the store is back',
        async () => {
          const response = await add(platform, `after-${statuses.length}`)
          statuses.push(response.status)
          expect(await response.text()).not.toMatch(PLACES)
          return response.status < 300
        },
        30_000,
      )
      expect(statuses.slice(0, -1).filter((status) => status !== 503)).toEqual([])
    }
    expect(platform.printed).toContain(`the folder ${path} was deleted`)
  }, 60_000)
})
