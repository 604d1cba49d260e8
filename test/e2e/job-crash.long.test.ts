import { afterAll, describe, expect, it } from 'vitest'
import { TestFolder } from '../support/child.ts'
import { missing } from '../support/installed.ts'
import { faultsOf, JobGateway, jobLines } from '../support/job-gateway.ts'
import { expectWholeJob } from '../support/killed-job.ts'
import { startPostgres } from '../support/servers.ts'

/** Long, because lines of a process that is gone are free only when its lease is over, after 30 s. */
const LINES = 300

/** `bench/experiments/jobs-crash.ts` kills ten times. */
it.each([
  [120, [40]],
  [LINES, [1, 60, 160]],
])(
  'a job of %i lines whose only process is killed after %j lines has each once, and charges none twice',
  async (lines, killedAt) => {
    await expectWholeJob(lines, killedAt)
    expect.assertions(4)
  },
  240_000,
)

const whyNot = missing('postgresql')
describe.skipIf(whyNot !== undefined)('two gateways on one PostgreSQL', { timeout: 240_000 }, () => {
  const folder = new TestFolder()
  const gateways: JobGateway[] = []
  const after: Array<() => Promise<void>> = []
  afterAll(async () => {
    for (const gateway of gateways) await gateway.end()
    for (const end of after) await end()
    folder.remove()
  })

  it('run the lines of one job together, and the rest alone when one is killed', async () => {
    const server = await startPostgres()
    after.push(() => server.close())
    for (const name of ['one', 'two']) {
      const store = { url: server.url }
      gateways.push(new JobGateway(folder, name, { store, ledger: { spoolPath: `${folder.path}/${name}` } }))
    }
    for (const gateway of gateways) await gateway.start()
    const [one, two] = gateways as [JobGateway, JobGateway]
    const { id } = await one.submit(jobLines(LINES))
    await two.until(id, 100)
    await one.kill()
    const batch = await two.ended(id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: LINES, completed: LINES, failed: 0 } })
    expect(faultsOf(await two.namesIn(batch), LINES)).toEqual({ missing: [], double: [] })
  })
})
