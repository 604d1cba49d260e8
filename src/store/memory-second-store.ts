import type { Fence } from '../domain/leader.ts'
import {
  addBillHours,
  type BillHour,
  type GatheredReports,
  type ReportExchange,
  type SecondStore,
  type SecondsClosing,
  type ToldCharges,
} from '../domain/second-store.ts'

/** Reports and bills in memory: for simulations and tests, and as the plain twin of the SQL ones. */
export class MemorySecondStore implements SecondStore {
  readonly #isHeld: (fence: Fence) => boolean
  readonly #rows = new Map<string, Row>()
  readonly #bills = new Map<string, BillHour>()
  #state: string | undefined
  #revision = 0

  constructor(isHeld: (fence: Fence) => boolean) {
    this.#isHeld = isHeld
  }

  exchange({ reporterId, told, heard }: ReportExchange): Promise<readonly ToldCharges[]> {
    for (const serial of heard) this.#rows.delete(keyOf(reporterId, serial))
    for (const { serial, body } of told) {
      const key = keyOf(reporterId, serial)
      if (!this.#rows.has(key)) this.#rows.set(key, { reporterId, serial, body, charges: undefined })
    }
    const answers: ToldCharges[] = []
    for (const { reporterId: of, serial, charges } of this.#rows.values())
      if (of === reporterId && charges !== undefined) answers.push({ serial, body: charges })
    return Promise.resolve(answers)
  }

  gather(): Promise<GatheredReports> {
    const open = [...this.#rows.values()].filter(({ charges }) => charges === undefined)
    const reports = open.map(({ reporterId, serial, body }) => ({ reporterId, serial, body }))
    return Promise.resolve({
      revision: this.#revision,
      state: this.#state,
      reports: reports.toSorted((a, b) => a.serial - b.serial),
    })
  }

  close({ fence, revision, state, bills, answers }: SecondsClosing): Promise<boolean> {
    if (!this.#isHeld(fence) || revision !== this.#revision) return Promise.resolve(false)
    this.#revision++
    this.#state = state
    for (const { reporterId, serial, body } of answers) {
      const row = this.#rows.get(keyOf(reporterId, serial))
      if (row !== undefined) row.charges = body
    }
    for (const bill of bills) {
      const key = `${bill.replicaId} ${bill.hour}`
      const known = this.#bills.get(key)
      this.#bills.set(key, known === undefined ? bill : addBillHours(known, bill))
    }
    return Promise.resolve(true)
  }

  bills(fromHour: number, toHour: number): Promise<readonly BillHour[]> {
    const all = [...this.#bills.values()].filter(({ hour }) => hour >= fromHour && hour < toHour)
    return Promise.resolve(all.toSorted((a, b) => a.hour - b.hour || (a.replicaId < b.replicaId ? -1 : 1)))
  }
}

interface Row {
  readonly reporterId: string
  readonly serial: number
  readonly body: string
  charges: string | undefined
}

const keyOf = (reporterId: string, serial: number): string => `${reporterId} ${serial}`
