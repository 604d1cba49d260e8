import { expect, it } from 'vitest'
import { stem } from './stem.ts'

/** From Porter's own examples. */
const STEMS: Readonly<Record<string, string>> = {
  caresses: 'caress',
  ponies: 'poni',
  cats: 'cat',
  agreed: 'agre',
  plastered: 'plaster',
  motoring: 'motor',
  conflated: 'conflat',
  hopping: 'hop',
  filing: 'file',
  happy: 'happi',
  relational: 'relat',
  digitizer: 'digit',
  operator: 'oper',
  sensibiliti: 'sensibl',
  triplicate: 'triplic',
  electrical: 'electr',
  hopeful: 'hope',
  goodness: 'good',
  allowance: 'allow',
  adjustment: 'adjust',
  adoption: 'adopt',
  probate: 'probat',
  controll: 'control',
  connections: 'connect',
  connecting: 'connect',
  sky: 'sky',
}

it.each(Object.entries(STEMS))('%s → %s', (word, expected) => expect(stem(word)).toBe(expected))

it('leaves other scripts and short words alone', () => {
  for (const word of ['is', 'água', '東京', '2024', 'naïve']) expect(stem(word)).toBe(word)
})
