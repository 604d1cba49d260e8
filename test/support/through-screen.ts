import fc from 'fast-check'
import type { Delta } from '../../src/domain/delta.ts'
import type { ScreeningTerms } from '../../src/domain/screening.ts'
import { AnswerScreens } from '../../src/safety/answer-screen.ts'
import { JoinedDeltas } from '../../src/wire/joined-deltas.ts'
import { FAKE_PARTS, screeningOf } from './fake-screens.ts'

/** Deltas through a screen with small rules, joined as clients and stores join them. */
export const OWN_VALUES = { '<EMAIL_3f>': 'own"1"@x.org', '<NAME_01>': 'Ada\\Byron' }
export const fakeScreens = new AnswerScreens(FAKE_PARTS)

export function throughScreen(
  deltas: readonly Delta[],
  terms: Partial<ScreeningTerms> = {},
  values?: Record<string, string>,
) {
  const screen = fakeScreens.of(screeningOf(terms, values))
  const client = new JoinedDeltas()
  const kept = new JoinedDeltas()
  let tokens = 0
  const out: Delta[] = []
  const take = (delta: Delta | undefined) => {
    if (delta === undefined) return
    tokens += delta.tokens
    out.push(delta)
    client.add({ ...delta, kept: delta.choices ?? [] })
    kept.add(delta)
  }
  for (const delta of deltas) take(screen === undefined ? delta : screen.write(delta))
  take(screen?.flush())
  return { client: client.whole(), kept: kept.whole(), findings: screen?.findings, tokens, out, screen }
}

export const holdModes = fc.constantFrom<ScreeningTerms['hold']>(
  { kind: 'entities' },
  { kind: 'sentences', tokensMax: 4 },
  { kind: 'sentences', tokensMax: 64 },
  { kind: 'whole' },
)
