import { leftSpoolFolders, takeSpoolFolder } from '../assembly/fs-spool-folders.ts'
import type { LiveStore } from '../assembly/live-store.ts'
import { type CancelTimer, type Clock, msToUs, US_PER_MS } from '../base/clock.ts'
import { STORE_PATH } from '../config/defaults.ts'
import type { Config } from '../config/schema.ts'
import type { Settlement } from '../domain/ledger.ts'
import { Balances } from '../lifecycle/balances.ts'
import type { Books, LedgerStore } from '../lifecycle/ledger-ports.ts'
import type { Journal } from '../lifecycle/ports.ts'
import type { Budgets } from '../policy/budgets/budgets.ts'
import { FsSpool } from '../spool/fs-spool.ts'
import { FsSpoolReader } from '../spool/fs-spool-reader.ts'
import { LedgerKeeper } from '../spool/ledger-keeper.ts'
import { SpoolBooks } from '../spool/spool-books.ts'
import { SqlLedgerStore } from '../store/sql-ledger-store.ts'

/** The ledger of a running server: books that go to a spool, and the keeper that brings them into the database. */
export interface LiveLedger {
  /** Empty where nothing is written down: then budgets count from the start of the process. */
  readonly parts: { readonly books?: Books; readonly balances?: Balances }
  /** What is written down, to read; undefined where nothing is. */
  readonly store: LedgerStore | undefined
  /**
   * What lies in the spool from an earlier life goes into the database; from then on it goes by itself. Resolves when the
   * budgets know what was used of them.
   */
  start(budgets: Budgets, areExpected: boolean): Promise<void>
  close(): Promise<void>
}

export interface LedgerWorld {
  readonly clock: Clock
  readonly journal: Journal
  readonly store: Pick<LiveStore, 'database' | 'isDurable' | 'isShared'>
  readonly complain: (problem: string) => void
}

const READER = 'ledger'
const RETRY_US = msToUs(1_000)
const REPORT_US = msToUs(1_000)
const PRUNE_US = msToUs(3_600_000)
const PRUNE_LINES = 10_000
const DAY_MS = 86_400_000

const NO_LEDGER: LiveLedger = {
  parts: {},
  store: undefined,
  start: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

export async function openLiveLedger(
  config: Pick<Config, 'ledger' | 'store'>,
  world: LedgerWorld,
): Promise<LiveLedger> {
  const { ledger } = config
  if (!ledger.enabled || !world.store.isDurable) return NO_LEDGER
  const path = ledger.spoolPath ?? `${config.store.path.replace(/^memory:$/, STORE_PATH)}.spool`
  const { clock, journal, complain } = world
  const taken = takeSpoolFolder(path, process.pid)
  if (taken === undefined) {
    complain(`No folder is free in ${path}: what is used is not written down.`)
    return NO_LEDGER
  }
  const { spool, keeper } = await openSpool(taken.folder, world, ledger.spoolBytesMax, (lines) =>
    balances.written(lines),
  )
  const balances = new Balances({
    clock,
    store: new SqlLedgerStore(world.store.database),
    between: (read) => keeper.between(read),
    isShared: world.store.isShared,
    isStrict: ledger.onUnknown === 'refuse',
    complain,
  })
  let isClosed = false
  const books = booksOf(spool, clock, ledger.crashesPaidBy === 'tenant')
  const report = (): void =>
    journal.record({ kind: 'ledger-reported', at: clock.now(), spool: spool.view(), keeper: keeper.view() })
  const beforeMs = (): number => clock.now() / US_PER_MS - ledger.lineDays * DAY_MS
  const store = new SqlLedgerStore(world.store.database)
  const stops = [
    every(clock, REPORT_US, report),
    every(clock, PRUNE_US, () => void store.prune(beforeMs(), PRUNE_LINES).catch(() => {})),
  ]
  return {
    parts: { books, balances },
    store,
    async start(budgets, areExpected) {
      for await (const folder of leftSpoolFolders(path, taken.folder, process.pid)) {
        const left = await openSpool(folder, world, ledger.spoolBytesMax)
        // The first record of these books closes what was open there.
        booksOf(left.spool, clock, false)
        await left.spool.close()
        await left.keeper.close()
      }
      let isCaughtUp = await keeper.catchUp()
      keeper.start()
      // What an earlier life used and the database does not have would be missing from the balances.
      while (!isCaughtUp && !isClosed) {
        await clock.sleep(RETRY_US)
        isCaughtUp = await keeper.catchUp()
      }
      if (!isClosed) await balances.start(budgets, areExpected)
    },
    async close() {
      isClosed = true
      balances.close()
      for (const stop of stops) stop()
      // The keeper reads what is committed: the last records are written first.
      await spool.close()
      await keeper.close()
      report()
      taken.unlock()
    },
  }
}

async function openSpool(
  folder: string,
  { clock, store, complain }: LedgerWorld,
  bytesMax: number,
  onWritten: (lines: readonly Settlement[]) => void = () => {},
): Promise<{ readonly spool: FsSpool; readonly keeper: LedgerKeeper }> {
  const spool = await FsSpool.open({
    folder,
    now: () => clock.now(),
    later: (ms, run) => clock.at(clock.now() + msToUs(ms), run),
    complain,
    bytesMax,
  })
  const reader = await FsSpoolReader.open(spool, READER, complain)
  const trim = (acknowledged: number): Promise<void> => spool.trim(acknowledged)
  return {
    spool,
    keeper: new LedgerKeeper({ clock, reader, store: new SqlLedgerStore(store.database), trim, complain, onWritten }),
  }
}

function booksOf(spool: FsSpool, clock: Clock, doTenantsPayCrashes: boolean): SpoolBooks {
  return new SpoolBooks({
    append: (text) => spool.append(text),
    nowMs: () => Math.floor(clock.now() / US_PER_MS),
    doTenantsPayCrashes,
    isCosting: true,
  })
}

function every(clock: Clock, us: number, run: () => void): CancelTimer {
  let cancel: CancelTimer = () => {}
  const next = (): void => {
    cancel = clock.at(clock.now() + us, () => {
      run()
      next()
    })
  }
  next()
  return () => cancel()
}
