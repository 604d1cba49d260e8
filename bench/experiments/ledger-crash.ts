import { parseArgs } from 'node:util'
import { Rng } from '../../src/base/rng.ts'
import { TestFolder } from '../../test/support/child.ts'
import { CrashingServer, lostBefore } from '../../test/support/ledger-crash.ts'

/**
 * Is anything that was used lost, or counted twice, when a server is killed? A server answers eight clients and is killed
 * at a random instant, again and again; its ledger is read at the end. `--kills` says how often, `--seed` when.
 */
const CLIENTS = 8
/** A kill comes after a few answers, and up to this much later: at any point between two group commits. */
const MORE_MS_MAX = 200

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' } },
})
const kills = Number(values.kills)
const rng = Rng.stream(Number(values.seed), 'kills')
const folder = new TestFolder()
const server = new CrashingServer(folder)

try {
  for (let i = 1; i <= kills; i++) {
    const base = await server.start()
    await server.loadUntilKilled(base, CLIENTS, CLIENTS, Math.floor(rng.next() * MORE_MS_MAX))
    if (i % 10 === 0) process.stderr.write(`${i} of ${kills} kills, ${server.notes.answers.length} answers\n`)
  }
  await server.start()
  await server.stop()
  const { lines, sums } = await server.ledger()
  const { answers } = server.notes
  const byTicket = new Map(lines.map((line) => [line.ticketId, line]))
  const isWritten = (id: string): boolean => byTicket.get(id)?.outcome === 'completed'
  const total = lines.reduce((sum, { priceNano }) => sum + BigInt(priceNano), 0n)
  const late = answers.filter(({ id }) => !isWritten(id))
  console.log(`kills                                      ${kills}`)
  console.log(`answers that clients got                   ${answers.length}`)
  console.log(`lines of the ledger                        ${lines.length}, ${byTicket.size} tickets`)
  console.log(
    `closed as crashed                          ${lines.filter(({ outcome }) => outcome === 'crashed').length}`,
  )
  console.log(`answers lost with their group commit       ${late.length}`)
  console.log(
    `longest time from a lost answer to a kill  ${longest(late.map(({ life, endedAtMs }) => (server.notes.kills[life] ?? 0) - endedAtMs))} ms`,
  )
  console.log(`answers lost although a later one is there ${lostBefore(answers, isWritten, CLIENTS).length}`)
  const isSum = sums.usageNano === total && sums.balanceNano === total
  console.log(`sum of lines = sums by hour = balance      ${isSum ? 'yes' : 'NO'}, ${total} nano-dollars`)
} finally {
  await server.end()
  folder.remove()
}

function longest(times: readonly number[]): number {
  return times.reduce((most, one) => Math.max(most, one), 0)
}
