import type { Clock } from '../../base/clock.ts'
import { msToUs, secondsToUs } from '../../base/clock.ts'
import { AskedThread, type AskedThreadLimits } from '../../base/live-asked-thread.ts'
import type { EntitySpan, NameFinder } from '../../domain/screening.ts'

/**
 * Names and addresses, off the event loop: a thread with the tagger, started by the first text of a tenant with the
 * screen `names`. A text that finds no place, is too long, comes while the thread is starting or is not answered in time
 * gets `undefined`, and its request looks at it itself, in slices: slower for all, and nothing is left unread.
 */
export const NAME_FINDER_DEFAULTS: AskedThreadLimits = {
  waitingMax: 256,
  waitingOfTenantMax: 64,
  /** A longer text would keep the thread from all others for more than 50 ms. */
  charactersMax: 131_072,
  charactersWaitingMax: 256 * 131_072,
  answerUsMax: msToUs(500),
  hangUs: secondsToUs(5),
  startUs: secondsToUs(30),
  idleUs: secondsToUs(60),
  restUs: secondsToUs(60),
}

export interface NameFinderOptions {
  readonly clock: Clock
  /** Looks at a text on the spot. */
  readonly tagger: Pick<NameFinder, 'find'>
  readonly limits?: Partial<AskedThreadLimits>
  /** The thread's module; a test may bring another. */
  readonly thread?: URL
}

export class ThreadedNameFinder implements NameFinder {
  readonly #tagger: Pick<NameFinder, 'find'>
  readonly #thread: AskedThread<string, readonly EntitySpan[]>

  constructor({ clock, tagger, limits = {}, thread }: NameFinderOptions) {
    this.#tagger = tagger
    this.#thread = new AskedThread({
      clock,
      module: thread ?? new URL('./live-name-thread.ts', import.meta.url),
      limits: { ...NAME_FINDER_DEFAULTS, ...limits },
      waitsForStart: false,
    })
  }

  get waitingCount(): number {
    return this.#thread.waitingCount
  }

  get isLoaded(): boolean {
    return this.#thread.isLoaded
  }

  find(text: string): readonly EntitySpan[] {
    return this.#tagger.find(text)
  }

  /** Never rejects. */
  ask(tenantId: string, text: string): Promise<readonly EntitySpan[] | undefined> {
    return this.#thread.ask(tenantId, text, text.length)
  }

  close(): void {
    this.#thread.close()
  }
}
