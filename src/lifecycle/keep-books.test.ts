import { describe, expect, it } from 'vitest'
import { ACME } from '../../test/support/requests.ts'
import { finished, lost, type Turnout } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import type { OpenedLine, SettledLine } from './ledger-ports.ts'

/** What the books hold of one request. */
async function booked(turnouts: readonly Turnout[]): Promise<{ opened: OpenedLine[]; settled: SettledLine[] }> {
  const opened: OpenedLine[] = []
  const settled: SettledLine[] = []
  const books = {
    isCosting: false,
    opened: (line: OpenedLine) => void opened.push(line),
    settled: (line: SettledLine) => void settled.push(line),
    costed: () => {},
  }
  const { world } = await VirtualWorld.scripted(turnouts, { books })
  world.serve({ endUser: 'ann' })
  await world.run()
  return { opened, settled }
}

const answered = (promptTokens: number, cachedTokens: number, outputTokens: number): Turnout => ({
  ...finished(outputTokens),
  ending: { kind: 'finished', usage: { promptTokens, cachedTokens, outputTokens } },
})

describe('a ticket in the books', () => {
  it('is opened at its first turn and settled at its end, for whoever pays', async () => {
    const { opened, settled } = await booked([finished(4)])
    const payer = { orgId: 'acme', tenantId: ACME.id, keyId: 'acme-1', endUser: 'ann' }
    expect(opened).toMatchObject([{ ticketId: 'req_1', ...payer, inputTokens: 20, isSold: true }])
    expect(settled).toMatchObject([{ ticketId: 'req_1', ...payer, outcome: 'completed', isCostOpen: false }])
  })

  it('has the prompt, the part of it that was cached, and the answer', async () => {
    const { settled } = await booked([answered(20, 12, 7)])
    const used = { promptTokens: 20, cachedTokens: 12, outputTokens: 7 }
    expect(settled).toMatchObject([{ inputTokens: 20, cachedTokens: 12, outputTokens: 7, priced: used }])
  })

  it('is opened once, however many attempts it takes', async () => {
    const { opened, settled } = await booked([lost(0), finished(4)])
    expect([opened.length, settled.length]).toEqual([1, 1])
  })

  it('of an answer that was lost is settled and sold at nothing', async () => {
    const { settled } = await booked([lost(2)])
    const nothing = { promptTokens: 0, cachedTokens: 0, outputTokens: 0 }
    expect(settled).toMatchObject([{ outcome: 'failed', priced: nothing }])
  })
})
