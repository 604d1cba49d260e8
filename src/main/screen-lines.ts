import { Cancellation } from '../base/cancellation.ts'
import type { ScreenAction, ScreenDirection, ScreenFinding, ScreeningTerms, ScreenText } from '../domain/screening.ts'
import { Placeholders } from '../gateway/placeholders.ts'
import { type BodyScreens, screenBody, screeningOf } from '../gateway/screen-body.ts'
import { TextScreen } from '../gateway/screen-text.ts'
import type { Screener } from '../lifecycle/screening-ports.ts'
import { makeFinders } from '../safety/entity-finders.ts'
import { loadNameTagger } from '../safety/names/fs-name-tagger.ts'
import { promptTexts } from '../wire/prompt-text.ts'
import { checkChat, checkCompletion } from '../wire/read-body.ts'
import type { ScreenedDialect } from '../wire/screening-exceptions.ts'

/**
 * What would a policy do? Each line is a body in JSON or a text, and goes through the code that screens requests: the
 * same rewriting, the same judges. No guard model is asked. The report has counts and places, and no text but where that
 * is asked for.
 */
export interface ScreenedLines {
  readonly lines: number
  /** Lines by the sternest thing that would follow. */
  readonly blocked: number
  readonly redacted: number
  readonly flagged: number
  readonly observed: number
  /** Lines that would be refused for another reason than a finding: token ids, what no screen can read. */
  readonly refused: number
  readonly unscreened: Readonly<Record<string, number>>
  readonly findings: readonly LineFinding[]
}

export interface LineFinding {
  readonly screen: ScreenFinding['screen']
  readonly category: string
  readonly action: ScreenAction
  readonly lines: number
  readonly count: number
  /** The line where it was found first, from 1; and the column, where the screen says a place. */
  readonly firstLine: number
  readonly firstColumn?: number
  readonly example?: string
}

export interface LinesOptions {
  readonly terms: ScreeningTerms
  readonly direction: ScreenDirection
  readonly showsText: boolean
  /** Judges what was rewritten; absent: only rewriting is tried. */
  readonly judge?: Screener['judge']
}

const SEVERITY: readonly ScreenAction[] = ['observe', 'flag', 'redact', 'block']

export async function screenLines(lines: Iterable<string>, options: LinesOptions): Promise<ScreenedLines> {
  // What a key does over time is not in a file.
  const rules = options.terms.rules.filter(({ screen }) => screen !== 'abuse')
  const report = new LineReport({ ...options, terms: { ...options.terms, rules } })
  let number = 0
  for (const line of lines) {
    if (line.trim() === '') continue
    await report.take(line, ++number)
  }
  return report.report()
}

class LineReport {
  readonly #options: LinesOptions
  readonly #finderOf = makeFinders()
  readonly #names = loadNameTagger()
  readonly #findings = new Map<string, LineFinding>()
  readonly #unscreened: Record<string, number> = {}
  readonly #byAction: Record<ScreenAction, number> = { observe: 0, flag: 0, redact: 0, block: 0 }
  #lines = 0
  #refused = 0

  constructor(options: LinesOptions) {
    this.#options = options
  }

  async take(line: string, number: number): Promise<void> {
    this.#lines++
    const found = this.#options.direction === 'output' ? this.#answer(line) : await this.#request(line)
    if (found === undefined) {
      this.#refused++
      return
    }
    const sternest = SEVERITY.findLast((action) => found.some((finding) => finding.action === action))
    if (sternest !== undefined) this.#byAction[sternest]++
    for (const finding of found) this.#note(finding, line, number)
  }

  report(): ScreenedLines {
    const { block: blocked, redact: redacted, flag: flagged, observe: observed } = this.#byAction
    const findings = [...this.#findings.values()].sort((a, b) => b.lines - a.lines || (a.screen < b.screen ? -1 : 1))
    const unscreened = this.#unscreened
    return { lines: this.#lines, blocked, redacted, flagged, observed, refused: this.#refused, unscreened, findings }
  }

  #answer(line: string): readonly ScreenFinding[] {
    const { terms } = this.#options
    const placeholders = new Placeholders({ isReversible: false, secret: '', tenantId: '', conversation: () => '' })
    const finder = this.#finderOf(terms, 'output')
    const screen = new TextScreen({ terms, finder, placeholders, direction: 'output' })
    screen.rewrite(line)
    return screen.found
  }

  /** Undefined: the request would be refused without a finding. */
  async #request(line: string): Promise<readonly ScreenFinding[] | undefined> {
    const { terms, judge } = this.#options
    const body = bodyIn(line)
    const screens: BodyScreens = { finderOf: this.#finderOf, names: this.#names, isModel: () => false, salt: 'offline' }
    const text = Buffer.from(body === undefined ? JSON.stringify({ text: line }) : line)
    const ask = { dialect: body === undefined ? 'completion' : dialectOf(body), tenantId: '', terms } as const
    const screened = await screenBody(screens, ask, text)
    if (screened.kind === 'fault') return undefined
    const { found } = screened
    for (const kind of found.unscreened) this.#unscreened[kind] = (this.#unscreened[kind] ?? 0) + 1
    if (judge === undefined || found.found.some(({ action }) => action === 'block')) return found.found
    const texts = textsOf(screened.bytes, found.texts)
    const verdict = await judge({
      requestId: 'offline',
      tenantId: 'offline',
      keyId: 'offline',
      promptTokens: 0,
      screening: screeningOf(found, texts),
      cancellation: new Cancellation(),
      askGuard: () => Promise.resolve({ kind: 'unasked', because: 'no guard model is asked offline' }),
    })
    return [...found.found, ...verdict.findings.filter(({ category }) => category !== 'unavailable')]
  }

  #note({ screen, category, action, count }: ScreenFinding, line: string, number: number): void {
    const name = `${screen}/${category}/${action}`
    const known = this.#findings.get(name)
    if (known !== undefined) {
      this.#findings.set(name, { ...known, lines: known.lines + 1, count: known.count + count })
      return
    }
    const { terms, direction, showsText } = this.#options
    const finder = screen === 'names' ? this.#names : this.#finderOf(terms, direction)
    const place = finder.find(line).find((span) => span.screen === screen && span.category === category)
    this.#findings.set(name, {
      screen,
      category,
      action,
      lines: 1,
      count,
      firstLine: number,
      ...(place !== undefined && { firstColumn: place.start + 1 }),
      ...(showsText && { example: exampleOf(line, place) }),
    })
  }
}

const EXAMPLE_LENGTH_MAX = 80

const exampleOf = (line: string, place: { start: number; end: number } | undefined): string =>
  (place === undefined ? line : line.slice(place.start, place.end)).slice(0, EXAMPLE_LENGTH_MAX)

function bodyIn(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.trimStart().startsWith('{')) return undefined
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>
  } catch {
    return undefined
  }
}

/** The dialect that has these members. */
function dialectOf(body: Readonly<Record<string, unknown>>): ScreenedDialect {
  if ('messages' in body) return 'system' in body || 'stop_sequences' in body ? 'messages' : 'chat'
  if ('prompt' in body) return 'completion'
  if ('inputs' in body) return 'tensors'
  if ('input' in body) return 'instructions' in body || Array.isArray(body['input']) ? 'responses' : 'embeddings'
  return 'transit'
}

/** The texts with their roles, where the body is a chat or a completion. */
function textsOf(bytes: Buffer, otherwise: readonly ScreenText[]): readonly ScreenText[] {
  const json: unknown = JSON.parse(bytes.toString('utf8'))
  const chat = checkChat(json)
  const checked = chat.kind === 'ok' ? chat : checkCompletion(json)
  if (checked.kind === 'fault') return otherwise
  return promptTexts(checked.value).segments.flatMap(({ role, text }) => (text === '' ? [] : [{ role, text }]))
}
