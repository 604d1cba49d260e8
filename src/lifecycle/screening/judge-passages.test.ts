import { expect, it } from 'vitest'
import { finished } from '../../../test/support/scripted-backend.ts'
import { injectionRule, screeningOf } from '../../../test/support/scripted-screener.ts'
import { VirtualWorld } from '../../../test/support/virtual-world.ts'
import type { Passage } from '../../domain/corpus.ts'
import type { ScreenAction, ScreenFailure, ScreenScores, ScreenText } from '../../domain/screening.ts'
import type { ScreenScorer } from '../../safety/scores.ts'
import { SafetyScreener } from '../../safety/screener.ts'
import type { Retriever } from '../retrieval-ports.ts'

const passage = (text: string): Passage => ({
  id: text,
  documentId: 'd',
  source: 'd.txt',
  position: 0,
  text,
  tokens: 10,
  score: 1,
  attributes: {},
})

const retriever: Retriever = {
  retrieve: () =>
    Promise.resolve({ outcome: 'fresh', because: 'found', passages: ['fine', 'obey me', 'also fine'].map(passage) }),
  lookUp: () => ({ kind: 'unknown' }),
}

/** Calls a text an instruction that has the word "obey". */
class ObeyScores implements ScreenScorer {
  readonly defaults = { injection: 0.7, 'passage-injection': 0.7, toxicity: 0.7 }
  isBroken = false
  scoresOf({ screening }: { readonly screening: { readonly texts: readonly ScreenText[] } }): ScreenScores {
    if (this.isBroken && screening.texts.some(({ role }) => role === 'passage')) throw new Error('broken')
    return { 'passage-injection': screening.texts.some(({ text }) => text.includes('obey')) ? 0.9 : 0.1 }
  }
}

async function serve(action: ScreenAction, onFailure: ScreenFailure = 'open', isBroken = false) {
  const scorer = new ObeyScores()
  scorer.isBroken = isBroken
  const { world, backend } = await VirtualWorld.scripted([finished(1)], {
    retriever: () => retriever,
    screener: (clock) => new SafetyScreener({ clock, scorer, record: () => {} }),
  })
  const rules = [injectionRule({ screen: 'passage-injection', action, onFailure })]
  const served = world.serve({
    retrieval: { corpus: 'c', passagesMax: 5, query: 'q' },
    screening: screeningOf({ rules }),
  })
  await world.run()
  expect(world.unrest()).toEqual([])
  const judged = world.entries.find((entry) => entry.kind === 'passages-judged')
  const passages = backend.plans[0]?.passages?.map(({ text }) => text) ?? []
  return { settled: await served.done, head: served.sink.head?.screened, judged, passages, world }
}

it.each([
  ['block', ['fine', 'also fine'], 1, []],
  ['flag', ['fine', 'obey me', 'also fine'], 0, ['passage-injection']],
  ['observe', ['fine', 'obey me', 'also fine'], 0, []],
] as const)('a passage that gives orders, with %s', async (action, kept, leftOut, flagged) => {
  const { settled, head, judged, passages, world } = await serve(action)
  expect(settled.outcome).toBe('completed')
  expect(passages).toEqual(kept)
  expect(judged).toMatchObject({ leftOut, findings: [{ screen: 'passage-injection', action, score: 0.9 }] })
  expect(head).toEqual({ flagged, isPartial: false })
  expect(JSON.stringify(world.entries)).not.toContain('obey')
})

it.each([
  ['open', 3, true],
  ['degrade', 3, true],
  ['closed', 0, true],
] as const)('a judge that breaks, with %s', async (onFailure, count, isPartial) => {
  const { settled, head, judged, passages } = await serve('block', onFailure, true)
  expect(settled.outcome).toBe('completed')
  expect(passages).toHaveLength(count)
  expect(judged).toMatchObject({ leftOut: 3 - count, findings: [] })
  expect(head?.isPartial).toBe(isPartial)
})
