import { parseArgs } from 'node:util'
import { Rng } from '../../src/base/rng.ts'
import { TestFolder } from '../../test/support/child.ts'
import { faultsOf, JobGateway, jobLines } from '../../test/support/job-gateway.ts'

/**
 * Is any line of a job lost, or answered twice, when the only process is killed? The process is killed at random instants
 * of a large job, again and again; the names in its files are counted at the end. `--lines`, `--kills`, `--seed`.
 */
const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: '50000' },
    kills: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
  },
})
const lines = Number(values.lines)
const kills = Number(values.kills)
const rng = Rng.stream(Number(values.seed), 'kills')
const folder = new TestFolder()
const path = `${folder.path}/data`
// Small and quick answers: what is tried is the bookkeeping.
const gateway = new JobGateway(folder, 'one', {
  store: { path },
  pools: [{ model: 'sim', backend: { kind: 'simulated', profile: 'h100-llama-1b' } }],
})
const DAY_MS = 86_400_000

function spread(values: readonly number[]): string {
  const [least = 0, ...more] = values.map(Math.round).sort((one, other) => one - other)
  return `${least} to ${more.at(-1) ?? least} ms, median ${[least, ...more][Math.floor(values.length / 2)]} ms`
}

try {
  await gateway.start()
  const submittedAt = performance.now()
  const { id } = await gateway.submit(jobLines(lines, 1))
  const first = await gateway.until(id, 1, DAY_MS)
  console.log(`submitted and first answer after           ${Math.round(performance.now() - submittedAt)} ms`)
  console.log(`total                                      ${first.request_counts.total}`)
  const instants = Array.from({ length: kills }, () => rng.next() * lines * 0.95).sort((a, b) => a - b)
  const spawnMs: number[] = []
  const resumeMs: number[] = []
  for (const [i, answered] of instants.entries()) {
    const before = await gateway.until(id, answered, DAY_MS)
    await new Promise((resolve) => setTimeout(resolve, rng.next() * 100))
    await gateway.kill()
    const spawnedAt = performance.now()
    await gateway.start()
    const readyAt = performance.now()
    const { completed, failed } = (await gateway.see(id)).request_counts
    await gateway.until(id, completed + failed + 1, DAY_MS)
    spawnMs.push(readyAt - spawnedAt)
    resumeMs.push(performance.now() - readyAt)
    const seen = before.request_counts.completed
    process.stderr.write(`kill ${i + 1} of ${kills} at ${seen} answers, ${completed} found again\n`)
  }
  const batch = await gateway.ended(id, DAY_MS)
  const names = await gateway.namesIn(batch)
  const { missing, double } = faultsOf(names, lines)
  const seconds = (performance.now() - submittedAt) / 1_000
  console.log(`kills                                      ${kills}`)
  console.log(`status                                     ${batch.status}`)
  console.log(`lines in the files                         ${names.length}`)
  console.log(`missing                                    ${missing.length}`)
  console.log(`more than once                             ${double.length}`)
  console.log(`from the start of a process to ready       ${spread(spawnMs)}`)
  console.log(`from ready to the next answer seen         ${spread(resumeMs)}`)
  console.log(`whole time                                 ${seconds.toFixed(1)} s`)
} finally {
  await gateway.end()
  folder.remove()
}
