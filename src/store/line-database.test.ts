import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { joinedLines } from '../../test/support/joined-lines.ts'
import { Cancellation } from '../base/cancellation.ts'
import { LiveClock } from '../base/live-clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { type Database, DatabaseUnavailable, QueryCancelled, type QueryOptions } from './database.ts'
import { LineDatabase, offerDatabase } from './line-database.ts'
import { PgliteDatabase } from './live-pglite.ts'

describe('the embedded database over a line', () => {
  const clock = new LiveClock()
  const owned = new PgliteDatabase({ clock, path: undefined })
  const [here, there] = joinedLines(clock)
  const asked = new LineDatabase(here)
  beforeAll(async () => {
    offerDatabase(there, owned, () => Promise.resolve())
    await owned.query('select 1', [])
  }, 60_000)
  afterAll(() => owned.close())

  it('carries statements, parameters and rows', async () => {
    await asked.ready()
    await asked.run('create table t (id int, name text, body bytea); create table u (id int)')
    const bytes = new Uint8Array([0, 255, 7])
    await asked.query('insert into t values ($1, $2, $3)', [1, 'a', bytes])
    const [row] = await asked.query('select id, name, body, null as nothing from t', [])
    expect(row).toMatchObject({ id: 1, name: 'a', body: bytes, nothing: null })
  })

  it('throws what the database threw, with its code', async () => {
    await expect(asked.query('select * from missing', [])).rejects.toMatchObject({ code: '42P01' })
  })
})

describe('a database over a line', () => {
  function world(query: Database['query']) {
    const clock = new VirtualClock()
    const [here, there] = joinedLines(clock)
    const unused = () => Promise.reject(new Error('unused'))
    offerDatabase(there, { query, run: unused, close: unused }, () => Promise.resolve())
    return { clock, here, there, asked: new LineDatabase(here) }
  }

  it('cancels at the owner', async () => {
    const { asked } = world(
      (_sql, _parameters, { cancellation }: QueryOptions = {}) =>
        new Promise((_, reject) => {
          cancellation?.onCancel((because) => reject(new QueryCancelled(because)))
        }),
    )
    const cancellation = new Cancellation()
    const query = asked.query('select 1', [], { cancellation })
    await Promise.resolve()
    cancellation.cancel('gone')
    await expect(query).rejects.toThrow(QueryCancelled)
    await expect(asked.query('select 1', [], { cancellation })).rejects.toThrow(QueryCancelled)
  })

  it('passes on the lane and the urgency', async () => {
    const seen: QueryOptions[] = []
    const { asked } = world((_sql, _parameters, options = {}) => {
      seen.push(options)
      return Promise.resolve([])
    })
    await asked.query('select 1', [], { lane: 'acme', isUrgent: true })
    expect(seen[0]).toMatchObject({ lane: 'acme', isUrgent: true })
  })

  it('is unavailable when the owner is gone, when it is silent and when the owner says so', async () => {
    const { clock, here, asked } = world(() => new Promise(() => {}))
    const silent = asked.query('select 1', []).catch((thrown: unknown) => thrown)
    await clock.run(200_000_000)
    expect(await silent).toBeInstanceOf(DatabaseUnavailable)
    here.close('the supervisor has ended')
    await expect(asked.query('select 1', [])).rejects.toMatchObject({
      name: 'DatabaseUnavailable',
      detail: 'The supervisor: the supervisor has ended.',
    })
    const other = world(() => Promise.reject(new DatabaseUnavailable('away', 'a folder')))
    await expect(other.asked.query('select 1', [])).rejects.toMatchObject({ message: 'away', detail: 'a folder' })
  })
})
