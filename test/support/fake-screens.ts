import type {
  EntitySpan,
  HoldMode,
  Screening,
  ScreeningTerms,
  ScreenRule,
  TextHold,
} from '../../src/domain/screening.ts'
import type { ReplaceEntity } from '../../src/safety/entities/entity-hold.ts'
import type { AnswerScreenParts } from '../../src/safety/screen-parts.ts'

/**
 * Small screens for tests of what stands around them: e-mail addresses and numbers of sixteen digits, and a judge that
 * dislikes a word. The hold keeps the last run of letters that either can have.
 */
const ENTITY = /[A-Za-z0-9._-]{1,24}@[A-Za-z0-9-]{1,12}\.[a-z]{2,6}(?![A-Za-z0-9@-])|(?<!\d)\d{16}(?!\d)/g
const TAIL = /[A-Za-z0-9._@-]{1,48}$/

export class FakeEntityHold implements TextHold {
  readonly #replace: ReplaceEntity
  #held = ''

  constructor(replace: ReplaceEntity) {
    this.#replace = replace
  }

  get heldLength(): number {
    return this.#held.length
  }

  push(piece: string): string {
    const text = this.#held + piece
    const open = TAIL.exec(text)?.index ?? text.length
    this.#held = text.slice(open)
    return this.#replaced(text.slice(0, open))
  }

  flush(): string {
    const rest = this.#held
    this.#held = ''
    return this.#replaced(rest)
  }

  #replaced(text: string): string {
    return text.replaceAll(ENTITY, (value, start: number) => {
      const category = value.includes('@') ? 'email' : 'card'
      const span: EntitySpan = { screen: 'pii', category, start, end: start + value.length }
      return this.#replace(value, span)
    })
  }
}

export const FAKE_PARTS: AnswerScreenParts = {
  makeEntityHold: (_terms, replace) => new FakeEntityHold(replace),
  judgeOf: (screen) =>
    screen === 'toxicity'
      ? { category: 'toxicity', scoreMin: 0.5, score: (text) => (text.includes('darn') ? 0.9 : 0.1) }
      : undefined,
}

export const outputRule = (more: Partial<ScreenRule> = {}): ScreenRule => ({
  screen: 'pii',
  direction: 'output',
  action: 'redact',
  onFailure: 'closed',
  ...more,
})

export const screeningTerms = (more: Partial<ScreeningTerms> = {}): ScreeningTerms => ({
  version: 'test',
  rules: [outputRule()],
  hold: { kind: 'entities' } satisfies HoldMode,
  join: 'gate',
  isReversible: false,
  allowed: [],
  patterns: [],
  binary: 'pass',
  ...more,
})

/** `values`: what placeholders stand for. */
export function screeningOf(more: Partial<ScreeningTerms> = {}, values?: Readonly<Record<string, string>>): Screening {
  const screening = { terms: screeningTerms(more), texts: [], found: [], unscreened: [] }
  if (values === undefined) return screening
  return {
    ...screening,
    restorer: { valueOf: (placeholder) => (Object.hasOwn(values, placeholder) ? values[placeholder] : undefined) },
  }
}
