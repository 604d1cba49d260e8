import { expect, it } from 'vitest'
import { shortened } from '../wire/embeddings.ts'
import { HASHED_DIMENSIONS, hashedEmbedding } from './hashed-embedding.ts'
import { runLongWork } from './long-work.ts'

const embed = (text: string): Float32Array =>
  runLongWork(hashedEmbedding(text), { breathe: undefined, isShort: true, cancellation: undefined }) as Float32Array
const cosine = (a: Float32Array, b: Float32Array): number => a.reduce((sum, part, i) => sum + part * b[i]!, 0)

const WEIR = 'A weir holds the water level of a river and spills what it cannot hold.'

it('is deterministic and of length 1, whatever the text', () => {
  for (const text of [WEIR, 'x', '  \n', '🙂', 'Wehr über den Fluß', 'a '.repeat(5_000)]) {
    expect(embed(text)).toHaveLength(HASHED_DIMENSIONS)
    expect(embed(text)).toEqual(embed(text))
    expect(cosine(embed(text), embed(text))).toBeCloseTo(1, 5)
  }
  expect(embed(' ')).not.toEqual(embed('\n'))
})

it('puts similar texts near each other, and others far away', () => {
  const near = cosine(embed(WEIR), embed('Weirs hold a river’s water level, and spill the rest.'))
  const far = cosine(embed(WEIR), embed('The quarterly invoice lists three unpaid subscriptions.'))
  expect(near).toBeGreaterThan(0.4)
  expect(Math.abs(far)).toBeLessThan(0.15)
  expect(cosine(embed('running shoes'), embed('runner shoe'))).toBeGreaterThan(0.1)
})

it('keeps its meaning when it is cut, as the API’s dimensions do', () => {
  const cut = (text: string): Float32Array => shortened(embed(text), 128)
  expect(cut(WEIR)).toHaveLength(128)
  expect(cosine(cut(WEIR), cut(WEIR))).toBeCloseTo(1, 5)
  expect(cosine(cut(WEIR), cut('The weir holds water.'))).toBeGreaterThan(0.3)
  expect(cosine(cut(WEIR), cut('Invoices are paid quarterly.'))).toBeLessThan(0.3)
})

it('has something to say in its first few parts, however short the text', () => {
  for (const text of ['a weir', 'a dam', 'x', 'Fluß']) {
    expect(cosine(shortened(embed(text), 8), shortened(embed(text), 8))).toBeCloseTo(1, 5)
  }
})
