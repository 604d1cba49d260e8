import type { TrainedModel } from '../../src/safety/models/model-file.ts'
import { crossValidate } from './cross-validate.ts'
import { bestWindow, type FloatModel, fitModel, readText, type Sample } from './fit.ts'
import { thresholdAt } from './measure.ts'
import type { Recipe } from './recipes.ts'

/** Shares of harmless texts, each kind counting the same, that reach `scoreMin` and `greyFrom`. */
const FALSE_RATIO = 0.01
const GREY_FALSE_RATIO = 0.05
/** Share of look-alikes that may reach `scoreMin`. */
const LOOK_ALIKE_FALSE_RATIO = 0.03
/** The largest weights are clipped: 1 of 2,000 of those in use, so that the others keep their differences. */
const CLIPPED_RATIO = 0.0005

/** A text that is more likely harmless is never a finding, however well a model tells them apart. */
const EVEN_CHANCE = 0.5
/** Pull of the calibration to an even chance. */
const PULL = 1e-3

/** Fits on all texts; what makes scores of margins comes from texts that their model had not seen. */
export function trainModel({ name, texts, terms, selfTest }: Recipe): TrainedModel {
  const model = fitModel(texts, terms)
  const { weights, scale } = quantise(model)
  const margins = crossValidate(texts, terms)
  const { slope, offset } = calibrate(margins)
  const toScore = (margin: number): number => round(1 / (1 + Math.exp(-(slope * margin + offset))))
  const calm = negativesBySource(
    margins,
    (source) => !source.endsWith('look-alike') && !source.endsWith('quoted-attack'),
  )
  const lookAlikes = negativesBySource(margins, (source) => source.endsWith('look-alike'))
  const least = thresholdAt(calm, FALSE_RATIO)
  const header = {
    name,
    scale,
    bias: round(model.bias),
    readsCharacters: terms.readsCharacters,
    lengthPower: terms.lengthPower,
    windowLength: terms.windowLength,
    slope,
    offset,
    scoreMin: Math.max(
      EVEN_CHANCE,
      toScore(lookAlikes.length === 0 ? least : Math.max(least, thresholdAt(lookAlikes, LOOK_ALIKE_FALSE_RATIO))),
    ),
    greyFrom: toScore(thresholdAt(calm, GREY_FALSE_RATIO)),
  }
  const restored: FloatModel = {
    weights: Float64Array.from(weights, (weight) => weight * scale),
    bias: header.bias,
    terms,
  }
  return {
    ...header,
    weights,
    selfTest: selfTest.map((text) => ({
      text,
      score: toScore(bestWindow(readText(text, terms.readsCharacters), restored.weights, restored.bias, terms).margin),
    })),
  }
}

export function quantise({ weights }: FloatModel): { readonly weights: Int8Array; readonly scale: number } {
  const sizes = weights
    .filter((weight) => weight !== 0)
    .map(Math.abs)
    .sort()
  const largest = sizes[Math.max(0, sizes.length - 1 - Math.floor(sizes.length * CLIPPED_RATIO))] ?? 1
  const scale = round(largest / 127)
  return {
    weights: Int8Array.from(weights, (weight) => Math.max(-127, Math.min(127, Math.round(weight / scale)))),
    scale,
  }
}

/**
 * Platt's scaling: the probability of a margin, both labels weighing the same. By Newton's method on margins of mean 0
 * and spread 1, with a weak pull to 0, which keeps the steps short where few texts are near the border.
 */
function calibrate(margins: ReadonlyMap<Sample, number>): { readonly slope: number; readonly offset: number } {
  const counts = [0, 0]
  for (const [{ isPositive }] of margins) counts[+isPositive] = (counts[+isPositive] as number) + 1
  const finite = [...margins].filter(([, margin]) => margin !== -Infinity)
  const mean = finite.reduce((sum, [, margin]) => sum + margin, 0) / finite.length
  const spread = Math.sqrt(finite.reduce((sum, [, margin]) => sum + (margin - mean) ** 2, 0) / finite.length)
  let slope = 0
  let offset = 0
  for (let step = 0; step < 100; step++) {
    let [a, b, aa, ab, bb] = [PULL * slope, PULL * offset, PULL, 0, PULL]
    for (const [{ isPositive }, margin] of finite) {
      const at = (margin - mean) / spread
      const weight = 0.5 / (counts[+isPositive] as number)
      const chance = 1 / (1 + Math.exp(-(slope * at + offset)))
      const error = weight * (chance - +isPositive)
      const curve = weight * chance * (1 - chance)
      a += error * at
      b += error
      aa += curve * at * at
      ab += curve * at
      bb += curve
    }
    const determinant = aa * bb - ab * ab
    slope -= (bb * a - ab * b) / determinant
    offset -= (aa * b - ab * a) / determinant
  }
  return { slope: round(slope / spread), offset: round(offset - (slope * mean) / spread) }
}

/** Each source counts the same: its scores are repeated, or thinned, to one size. */
function negativesBySource(margins: ReadonlyMap<Sample, number>, isWanted: (source: string) => boolean): number[] {
  const bySource = new Map<string, number[]>()
  for (const [{ source, isPositive }, margin] of margins) {
    if (isPositive || !isWanted(source)) continue
    const found = bySource.get(source)
    if (found === undefined) bySource.set(source, [margin])
    else found.push(margin)
  }
  const size = 2_000
  return [...bySource.values()].flatMap((scores) => {
    const sorted = Float64Array.from(scores).sort()
    return Array.from({ length: size }, (_, at) => sorted[Math.floor((at * sorted.length) / size)] as number)
  })
}

/** Nine digits: enough for a score, and the same bytes from every machine. */
function round(value: number): number {
  return Number(value.toPrecision(9))
}
