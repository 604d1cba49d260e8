import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeModel } from './model-file.ts'
import { MODEL_NAMES, SafetyModels } from './safety-models.ts'

/** The weights that are part of the project; `bench/safety/train.ts` makes them. */
const SHIPPED_WEIGHTS = join(import.meta.dirname, 'weights')

/** Reads all models at once: half a megabyte, a few milliseconds. */
export function loadSafetyModels(folder = SHIPPED_WEIGHTS): SafetyModels {
  return new SafetyModels(MODEL_NAMES.map((name) => decodeModel(readFileSync(join(folder, `${name}.bin`)))))
}
