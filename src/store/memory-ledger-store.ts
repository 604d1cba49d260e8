import type { Settlement } from '../domain/ledger.ts'
import { scopesOf } from '../domain/ledger-scope.ts'
import type {
  Balance,
  HourBalance,
  LedgerStore,
  UsageAsk,
  UsageDimension,
  UsageRow,
} from '../lifecycle/ledger-ports.ts'

/** The ledger in memory: for tests, and as the plain twin of the SQL store. Sums are made from the lines when asked. */
export class MemoryLedgerStore implements LedgerStore {
  readonly #lines = new Map<string, Settlement>()
  /** Sums outlive their lines. */
  readonly #counted: Settlement[] = []

  write(lines: readonly Settlement[]): Promise<number> {
    let fresh = 0
    for (const line of lines) {
      if (this.#lines.has(line.ticketId)) continue
      this.#lines.set(line.ticketId, line)
      this.#counted.push(line)
      fresh++
    }
    return Promise.resolve(fresh)
  }

  balances(scopes: readonly string[], fromHour: number, toHour: number): Promise<readonly Balance[]> {
    const found: Balance[] = []
    for (const scope of [...new Set(scopes)].sort()) {
      const lines = this.#counted.filter(
        (line) => isWithin(line, fromHour, toHour) && scopesOf(line, line.model).includes(scope),
      )
      if (lines.length > 0) found.push({ scope, ...balanceOf(lines.map(soldOnly)) })
    }
    return Promise.resolve(found)
  }

  async hourlyBalances(scopes: readonly string[], fromHour: number, toHour: number): Promise<readonly HourBalance[]> {
    const hours = [...new Set(this.#counted.map(({ atMs }) => Math.floor(atMs / 3_600_000)))].sort((a, b) => a - b)
    const found = await Promise.all(
      hours
        .filter((hour) => hour >= fromHour && hour < toHour)
        .map(async (hour) => (await this.balances(scopes, hour, hour + 1)).map((row) => ({ ...row, hour }))),
    )
    return found.flat().sort((a, b) => (a.scope < b.scope ? -1 : a.scope > b.scope ? 1 : a.hour - b.hour))
  }

  usage(ask: UsageAsk): Promise<readonly UsageRow[]> {
    const { fromHour, toHour, by, orgId, tenantId, keyId, model, rowsMax, rowsSkip = 0 } = ask
    const isMeant = (line: Settlement): boolean =>
      isWithin(line, fromHour, toHour) &&
      (orgId === undefined || line.orgId === orgId) &&
      (tenantId === undefined || line.tenantId === tenantId) &&
      (keyId === undefined || line.keyId === keyId) &&
      (model === undefined || line.model === model)
    const groups = new Map<string, Settlement[]>()
    for (const line of this.#counted.filter(isMeant)) {
      const name = JSON.stringify(by.map((dimension) => DIMENSIONS[dimension](line)))
      const lines = groups.get(name)
      if (lines === undefined) groups.set(name, [line])
      else lines.push(line)
    }
    const rows = [...groups.values()].sort((a, b) => compare(by, a, b)).slice(rowsSkip, rowsSkip + rowsMax)
    return Promise.resolve(rows.map((lines) => rowOf(by, lines)))
  }

  find(ticketId: string): Promise<Settlement | undefined> {
    return Promise.resolve(this.#lines.get(ticketId))
  }

  prune(beforeMs: number, linesMax: number): Promise<number> {
    const old = [...this.#lines.values()].filter(({ atMs }) => atMs < beforeMs).sort((a, b) => a.atMs - b.atMs)
    const gone = old.slice(0, linesMax)
    for (const { ticketId } of gone) this.#lines.delete(ticketId)
    return Promise.resolve(gone.length)
  }
}

const hourOf = ({ atMs }: Settlement): number => Math.floor(atMs / 3_600_000)
const isWithin = (line: Settlement, from: number, to: number): boolean => hourOf(line) >= from && hourOf(line) < to

const DIMENSIONS: Readonly<Record<UsageDimension, (line: Settlement) => string | number>> = {
  org: ({ orgId }) => orgId,
  tenant: ({ tenantId }) => tenantId,
  key: ({ keyId }) => keyId,
  model: ({ model }) => model,
  day: (line) => Math.floor(hourOf(line) / 24) * 24,
  hour: hourOf,
}

function compare(by: readonly UsageDimension[], a: readonly Settlement[], b: readonly Settlement[]): number {
  for (const dimension of by) {
    const [left, right] = [DIMENSIONS[dimension](a[0] as Settlement), DIMENSIONS[dimension](b[0] as Settlement)]
    if (left !== right) return left < right ? -1 : 1
  }
  return 0
}

function balanceOf(lines: readonly Settlement[]): Omit<Balance, 'scope'> {
  const sum = (of: (line: Settlement) => number): number => lines.reduce((total, line) => total + of(line), 0)
  return {
    requests: lines.length,
    inputTokens: sum(({ inputTokens }) => inputTokens),
    cachedTokens: sum(({ cachedTokens }) => cachedTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    priceNano: bigSum(lines, ({ priceNano }) => priceNano),
    costNano: bigSum(lines, ({ costNano }) => costNano),
  }
}

function rowOf(by: readonly UsageDimension[], lines: readonly Settlement[]): UsageRow {
  const first = lines[0] as Settlement
  const named = <T>(dimension: UsageDimension, value: T): T | undefined => (by.includes(dimension) ? value : undefined)
  return {
    ...balanceOf(lines),
    orgId: named('org', first.orgId),
    tenantId: named('tenant', first.tenantId),
    keyId: named('key', first.keyId),
    model: named('model', first.model),
    hour: named('hour', hourOf(first)) ?? named('day', Number(DIMENSIONS.day(first))),
    prefillUs: bigSum(lines, ({ prefillUs }) => prefillUs),
    decodeUs: bigSum(lines, ({ decodeUs }) => decodeUs),
    kvBlockMs: bigSum(lines, ({ kvBlockMs }) => kvBlockMs),
    batchingSavedNano: bigSum(lines, ({ batchingSavedNano }) => batchingSavedNano),
    cacheSavedNano: bigSum(lines, ({ cacheSavedNano }) => cacheSavedNano),
  }
}

const bigSum = (lines: readonly Settlement[], of: (line: Settlement) => number): bigint =>
  lines.reduce((total, line) => total + BigInt(of(line)), 0n)

/** Tokens of an answer that was lost are nobody's. */
const soldOnly = (line: Settlement): Settlement =>
  line.outcome === 'failed' || line.outcome === 'crashed'
    ? { ...line, inputTokens: 0, cachedTokens: 0, outputTokens: 0 }
    : line
