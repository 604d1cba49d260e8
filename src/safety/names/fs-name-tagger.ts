import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeNameWeights } from './name-file.ts'
import { NameTagger } from './name-tagger.ts'

/** The weights that are part of the project; `bench/safety/train-names.ts` makes them. */
const SHIPPED_WEIGHTS = join(import.meta.dirname, 'weights', 'names.bin')

export const loadNameTagger = (file = SHIPPED_WEIGHTS): NameTagger =>
  new NameTagger(decodeNameWeights(readFileSync(file)))
