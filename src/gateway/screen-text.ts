import { TurnBatch } from '../base/live-turn-batch.ts'
import type {
  EntitySpan,
  NameFinder,
  RewritingScreen,
  ScreenAction,
  ScreenDirection,
  ScreenFinding,
  ScreeningTerms,
  TextFinder,
  TextRewriter,
} from '../domain/screening.ts'
import { NAME_OVERLAP_LENGTH, NAME_WINDOW_LENGTH, namesBeside } from './name-spans.ts'
import { type Placeholders, pseudonymsIn } from './placeholders.ts'

/**
 * The rewriting of one request's texts: what the finder finds is counted, and replaced where the policy says `redact`
 * or `block`. A blocked request is refused; it is rewritten all the same, so that nothing on the way to the refusal
 * holds the value.
 *
 * Long texts are looked at in windows that overlap, with a pause between them (`yield`): no text stops the event loop
 * for longer than one window takes.
 *
 *     window 1  ├───────────────────────┤
 *     window 2                   ├──────┴────────────────┤      findings that begin here ─┐ belong to the window
 *                                └ from here on ◀─────────────────────────────────────────┘ that shows all of them
 */
export interface TextScreenOptions {
  readonly terms: ScreeningTerms
  readonly finder: TextFinder
  /** For policies with the screen `names`; without it that screen finds nothing. */
  readonly names?: NameFinder | undefined
  readonly placeholders: Placeholders
  /** What goes in, unless said otherwise. */
  readonly direction?: ScreenDirection
}

/** UTF-16 units that are looked at without a pause: half a millisecond. */
export const WINDOW_LENGTH = 16_384
/** Longest finding that a window may have cut without noticing. What it has found and cut, it shows at its end. */
const OVERLAP_LENGTH = 2_048

/** Values that are replaced without a pause: the pseudonym of each is an HMAC. */
const SPANS_PER_TURN = 128

export class TextScreen implements TextRewriter {
  readonly #options: TextScreenOptions
  readonly #direction: ScreenDirection
  readonly #actions: Partial<Record<RewritingScreen, ScreenAction>> = {}
  readonly #found = new Map<string, ScreenFinding & { count: number }>()
  /** The same list from beginning to end: what is found later is added to it. */
  readonly found: ScreenFinding[] = []

  constructor(options: TextScreenOptions) {
    this.#options = options
    this.#direction = options.direction ?? 'input'
    for (const { screen, direction, action } of options.terms.rules)
      if (direction === this.#direction && isRewriting(screen)) this.#actions[screen] = action
  }

  rewrite(text: string): string | undefined {
    return drained(this.#unblocked(text))
  }

  rewriteInTurns(text: string): Promise<string | undefined> {
    return withPauses(this.#unblocked(text))
  }

  *#unblocked(text: string): ScreenWork<string | undefined> {
    const before = this.#blockedCount()
    const rewritten = yield* this.replaceIn(text)
    return this.#blockedCount() > before ? undefined : rewritten
  }

  /** The text with what has to be replaced; the very same string where there is nothing. */
  *replaceIn(text: string, isIdentity = false): ScreenWork<string> {
    const spans = yield* this.spansIn(text)
    return spans.length === 0 ? text : yield* this.replaceSpans(text, spans, isIdentity)
  }

  /** Everything that the screens find in a text, outside the placeholders of earlier turns. */
  *spansIn(text: string): ScreenWork<readonly EntitySpan[]> {
    const { finder } = this.#options
    const ruled = text.length <= WINDOW_LENGTH ? finder.find(text) : yield* spansInWindows(finder, text)
    const all = this.readsNames ? namesBeside(text, ruled, yield* this.#namesIn(text), this.#options.terms) : ruled
    if (all.length === 0) return all
    const made = pseudonymsIn(text)
    const spans = made.length === 0 ? all : outside(all, made)
    return spans.filter(({ screen }) => this.#actions[screen] !== undefined)
  }

  /** Whether names are looked for: then a text may have to wait for their thread. */
  get readsNames(): boolean {
    return this.#options.names !== undefined && this.#actions.names !== undefined
  }

  /** Asks the thread where somebody waits for it, and looks here otherwise. */
  *#namesIn(text: string): ScreenWork<readonly EntitySpan[]> {
    const { names, placeholders } = this.#options
    if (names === undefined) return []
    let found: readonly EntitySpan[] | undefined
    if (names.ask !== undefined)
      yield async () => {
        found = await names.ask?.(placeholders.tenantId, text)
      }
    return found ?? (yield* spansInWindows(names, text, NAME_WINDOW_LENGTH, NAME_OVERLAP_LENGTH))
  }

  /** Counts what was found, and replaces what has to be. */
  *replaceSpans(text: string, spans: readonly EntitySpan[], isIdentity = false): ScreenWork<string> {
    const { placeholders } = this.#options
    let out = ''
    let from = 0
    for (const [i, { screen, category, start, end }] of spans.entries()) {
      if (i > 0 && i % SPANS_PER_TURN === 0) yield undefined
      const action = this.count(screen, category)
      if (action !== 'redact' && action !== 'block') continue
      const value = text.slice(start, end)
      out += text.slice(from, start)
      out += isIdentity ? placeholders.makeIdentity(category, value) : placeholders.make(category, value)
      from = end
    }
    return from === 0 && out === '' ? text : out + text.slice(from)
  }

  count(screen: RewritingScreen, category: string): ScreenAction | undefined {
    const action = this.#actions[screen]
    if (action === undefined) return undefined
    const name = `${screen}/${category}`
    const known = this.#found.get(name)
    if (known !== undefined) known.count++
    else {
      const finding = { screen, direction: this.#direction, category, action, count: 1 }
      this.#found.set(name, finding)
      this.found.push(finding)
    }
    return action
  }

  /** Whether findings of this screen are taken out of the text. */
  isReplacing(screen: RewritingScreen): boolean {
    const action = this.#actions[screen]
    return action === 'redact' || action === 'block'
  }

  #blockedCount(): number {
    return this.found.reduce((sum, { action, count }) => sum + (action === 'block' ? count : 0), 0)
  }
}

/** Work with pauses, in each of which everything else runs; with a function, the pause lasts until it is done. */
export type ScreenWork<T> = Generator<(() => Promise<void>) | undefined, T>

/** Runs it to its end without a pause, and without what would have to be waited for. */
export function drained<T>(work: ScreenWork<T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

const pauses = new TurnBatch()

/** Runs it to its end, with a turn of the event loop in each pause. */
export async function withPauses<T>(work: ScreenWork<T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
    await (value === undefined ? new Promise<void>((resume) => pauses.add(resume)) : value())
  }
}

function* spansInWindows(
  finder: Pick<TextFinder, 'find'>,
  text: string,
  windowLength = WINDOW_LENGTH,
  overlapLength = OVERLAP_LENGTH,
): ScreenWork<EntitySpan[]> {
  const spans: EntitySpan[] = []
  let from = 0
  let length = windowLength
  while (from < text.length) {
    const to = Math.min(text.length, from + length)
    const isLast = to === text.length
    const next = isLast ? to : breakBefore(text, to - overlapLength)
    let goOnAt = next
    for (const span of finder.find(text.slice(from, to))) {
      const start = span.start + from
      const end = span.end + from
      if (start >= next) break
      // A finding at the very end goes on behind it: the next window begins with it, and is longer if it has to be.
      if (end === to && !isLast) {
        goOnAt = start
        break
      }
      spans.push({ ...span, start, end })
      goOnAt = Math.max(goOnAt, end)
    }
    length = goOnAt === from ? 2 * length : windowLength
    from = goOnAt
    yield undefined
  }
  return spans
}

/** Characters that are looked back for a space: a window should not begin within a word. */
const SPACELESS_LENGTH_MAX = 1_024

function breakBefore(text: string, at: number): number {
  for (let i = at; i > at - SPACELESS_LENGTH_MAX; i--) if (text.charCodeAt(i - 1) <= 32) return i
  return isLowHalf(text.charCodeAt(at)) ? at - 1 : at
}

const isLowHalf = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** The spans that lie in none of the places. Both are sorted: one walk, however many a client writes. */
function outside(
  spans: readonly EntitySpan[],
  places: ReadonlyArray<{ readonly start: number; readonly end: number }>,
): EntitySpan[] {
  let at = 0
  return spans.filter(({ start, end }) => {
    while (at < places.length && (places[at]?.end ?? 0) <= start) at++
    const place = places[at]
    return place === undefined || start < place.start || end > place.end
  })
}

const isRewriting = (screen: string): screen is RewritingScreen =>
  screen === 'pii' || screen === 'secrets' || screen === 'names' || screen === 'patterns'
