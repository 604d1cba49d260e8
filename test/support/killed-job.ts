import { expect } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { TestFolder } from './child.ts'
import { faultsOf, JobGateway, jobLines } from './job-gateway.ts'

/** A job whose only process is killed when this many lines are answered: every line is in its files once, and sold once. */
export async function expectWholeJob(lines: number, killedAt: readonly number[]): Promise<void> {
  const folder = new TestFolder()
  const path = `${folder.path}/data`
  const gateway = new JobGateway(folder, 'one', { store: { path } })
  try {
    await gateway.start()
    const { id } = await gateway.submit(jobLines(lines))
    for (const answered of killedAt) {
      await gateway.until(id, answered)
      await gateway.kill()
      await gateway.start()
    }
    const batch = await gateway.ended(id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: lines, completed: lines, failed: 0 } })
    expect(faultsOf(await gateway.namesIn(batch), lines)).toEqual({ missing: [], double: [] })
    await gateway.stop()
    await expectSoldOnce(path, lines)
  } finally {
    await gateway.end()
    folder.remove()
  }
}

async function expectSoldOnce(path: string, lines: number): Promise<void> {
  const database = new PgliteDatabase({ clock: new LiveClock(), path })
  try {
    const rows = await database.query(
      `select split_part(split_part(ticket_id, '.', 1), '~', 1) as line,
              (count(*) filter (where outcome = 'completed'))::int as sold,
              (count(*) filter (where outcome <> 'completed' and price_nano > 0))::int as wrong
         from settlement where ticket_id like 'batch_req_%' group by 1`,
      [],
    )
    expect(rows.length).toBeGreaterThan(lines / 2)
    expect(rows.filter(({ sold, wrong }) => Number(sold) > 1 || Number(wrong) > 0)).toEqual([])
  } finally {
    await database.close()
  }
}
