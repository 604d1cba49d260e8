import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { foldOf } from '../bench/safety/cross-validate.ts'
import { expandTemplates } from '../bench/safety/expand.ts'
import { recallAbove, rocOf, thresholdAt } from '../bench/safety/measure.ts'
import { clusterTexts } from '../bench/safety/near-duplicates.ts'
import { makeRecipes, type Recipe } from '../bench/safety/recipes.ts'
import { loadTexts } from '../bench/safety/sources.ts'
import { trainModel } from '../bench/safety/train-model.ts'
import { decodeModel, encodeModel } from '../src/safety/models/model-file.ts'
import { MODEL_NAMES, SafetyModels } from '../src/safety/models/safety-models.ts'

/** The command that trains the safety models, on made-up texts; and on the real ones where they are. */

const TERMS = {
  windowLength: 500,
  readsCharacters: true,
  lengthPower: 0.5,
  epochs: 4,
  rate: 0.3,
  decay: 1e-3,
  sourcePower: 0.7,
}

/** Two vocabularies: whoever learns anything tells them apart. */
function madeUpRecipe(name: string): Recipe {
  const texts = Array.from({ length: 120 }, (_, at) => {
    const isPositive = at % 2 === 0
    const words = isPositive ? ['blorp', 'zang', 'quix', 'frell'] : ['meadow', 'bread', 'window', 'river']
    const text = `${words[at % 4]} ${words[(at >> 2) % 4]} number ${at} ${words[(at >> 3) % 4]}.`
    return { text, isPositive, source: isPositive ? 'odd' : 'plain', group: `g${at % 10}`, kind: 'any' }
  })
  return { name, texts, terms: TERMS, selfTest: ['Blorp the zang quix.', 'Bread by the river.'] }
}

describe('training', () => {
  it('learns what it is shown, and gives the same bytes again', () => {
    const bytes = encodeModel(trainModel(madeUpRecipe('toxicity')))
    expect(Buffer.compare(bytes, encodeModel(trainModel(madeUpRecipe('toxicity'))))).toBe(0)
    const trained = decodeModel(bytes)
    const models = new SafetyModels(MODEL_NAMES.map((name) => ({ ...trained, name })))
    expect(models.failedSelfTests()).toEqual([])
    const { score, scoreMin } = models.get('toxicity')
    expect(score('A zang, a blorp and a quix.')).toBeGreaterThan(scoreMin)
    expect(score('The river, the meadow and the bread.')).toBeLessThan(scoreMin)
  })

  const folder = process.env['SPILLWAY_SAFETY_TEXTS']
  it.skipIf(folder === undefined)(
    'gives the weights of the project again (skipped: SPILLWAY_SAFETY_TEXTS names no folder with the training texts)',
    { timeout: 600_000 },
    () => {
      for (const recipe of makeRecipes(loadTexts(folder ?? ''))) {
        const shipped = readFileSync(
          join(import.meta.dirname, '..', 'src', 'safety', 'models', 'weights', `${recipe.name}.bin`),
        )
        expect(Buffer.compare(encodeModel(trainModel(recipe)), shipped), recipe.name).toBe(0)
      }
    },
  )
})

describe('templates', () => {
  it('are expanded into texts of one group each', () => {
    const source = '<who> = Ann | Bob\n# not this\n@ greeting\n(hi|hello) <who>[, dear|!]\n@ other\nprint⦅⟦1⟧⦆\\nend'
    const made = expandTemplates('t', source, 50)
    const greetings = made.filter(({ kind }) => kind === 'greeting')
    expect(new Set(greetings.map(({ text }) => text)).size).toBe(12)
    expect(new Set(greetings.map(({ group }) => group))).toEqual(new Set(['t:4']))
    for (const { text } of greetings) expect(text).toMatch(/^(hi|hello) (Ann|Bob)(, dear|!)?$/)
    expect(made.filter(({ kind }) => kind === 'other').map(({ text }) => text)).toEqual(['print([1])\nend'])
  })

  it('say which list is missing', () => {
    expect(() => expandTemplates('t', 'hi <nobody>', 1)).toThrow('no list <nobody>')
  })
})

it('joins texts that share over 30 % of their runs of five words, and what is joined to them', () => {
  const words = (from: number, count: number): string =>
    Array.from({ length: count }, (_, at) => `w${from + at}`).join(' ')
  const clusters = clusterTexts([
    words(0, 20),
    words(10, 20),
    words(20, 20),
    words(100, 20),
    words(118, 20),
    'ab',
    'Ab!',
  ])
  expect(clusters[0]).toBe(clusters[1])
  expect(clusters[1]).toBe(clusters[2])
  expect(new Set([clusters[0], clusters[3], clusters[4], clusters[5]]).size).toBe(4)
  expect(clusters[5]).toBe(clusters[6])
})

it('keeps a group in one fold, and uses all folds', () => {
  const folds = Array.from({ length: 500 }, (_, at) => foldOf(`texts:${at}`))
  expect(new Set(folds)).toEqual(new Set([0, 1, 2, 3, 4]))
  expect(foldOf('texts:7')).toBe(folds[7])
})

it('measures ranks', () => {
  expect(rocOf([3, 4], [1, 2]).auc).toBe(1)
  expect(rocOf([1, 2], [1, 2]).auc).toBe(0.5)
  expect(rocOf([1], [2]).auc).toBe(0)
  const negatives = Array.from({ length: 100 }, (_, at) => at)
  expect(recallAbove(negatives, thresholdAt(negatives, 0.01))).toBe(0.01)
  expect(recallAbove(negatives, thresholdAt(negatives, 0.001))).toBe(0)
})
