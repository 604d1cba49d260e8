import { afterAll, describe, expect, it } from 'vitest'
import { TestFolder } from '../support/child.ts'
import { CrashingServer, lostBefore, priceNanoOf } from '../support/ledger-crash.ts'

/** `bench/experiments/ledger-crash.ts` does the same two hundred times. */
describe('the ledger of a server that is killed under load', { timeout: 240_000 }, () => {
  const folder = new TestFolder()
  const server = new CrashingServer(folder)
  afterAll(async () => {
    await server.end()
    folder.remove()
  })

  it('has every answer that was given before, once, and its sums are those of its lines', async () => {
    const clients = 8
    for (const answers of [30, 70]) await server.loadUntilKilled(await server.start(), clients, answers)
    await server.start()
    await server.stop()

    const { lines, sums } = await server.ledger()
    const byTicket = new Map(lines.map((line) => [line.ticketId, line]))
    expect(byTicket.size).toBe(lines.length)
    const { answers } = server.notes
    // An ending that was not yet on the disk is lost with the process: then the ticket is closed as crashed.
    const isWritten = (id: string): boolean => byTicket.get(id)?.outcome === 'completed'
    expect(lostBefore(answers, isWritten, clients)).toEqual([])
    const found = answers.filter(({ id }) => isWritten(id))
    expect(found.length).toBeGreaterThan(answers.length / 2)
    for (const { id, inputTokens, outputTokens } of found) {
      expect(byTicket.get(id)).toMatchObject({
        tenantId: 'acme',
        outcome: 'completed',
        inputTokens,
        outputTokens,
        priceNano: priceNanoOf(inputTokens, outputTokens),
        priceVersion: 'v1',
      })
    }
    const total = lines.reduce((sum, { priceNano }) => sum + BigInt(priceNano), 0n)
    expect(sums).toEqual({ usageNano: total, balanceNano: total })
    expect(lines.some(({ outcome }) => outcome === 'crashed')).toBe(true)
  })
})
