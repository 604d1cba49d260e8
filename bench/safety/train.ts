/**
 * Trains the safety models and writes their weights.
 *
 *   node bench/safety/train.ts FOLDER [OUT]
 *
 * FOLDER has the training texts of other people (docs/operations/safety-models.md says which); they are not part of the
 * project, the weights are. The same texts give the same bytes on every machine.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeModel } from '../../src/safety/models/model-file.ts'
import { makeRecipes } from './recipes.ts'
import { loadTexts } from './sources.ts'
import { trainModel } from './train-model.ts'

const [folder, out = join(import.meta.dirname, '..', '..', 'src', 'safety', 'models', 'weights')] =
  process.argv.slice(2)
if (folder === undefined)
  throw new Error('usage: node bench/safety/train.ts FOLDER [OUT]; FOLDER has the training texts')
mkdirSync(out, { recursive: true })
for (const recipe of makeRecipes(loadTexts(folder))) {
  const model = trainModel(recipe)
  const bytes = encodeModel(model)
  writeFileSync(join(out, `${recipe.name}.bin`), bytes)
  const positives = recipe.texts.filter(({ isPositive }) => isPositive).length
  console.log(
    `${recipe.name}: ${positives} + ${recipe.texts.length - positives} texts, score from ${model.scoreMin.toFixed(3)}, ` +
      `grey from ${model.greyFrom.toFixed(3)}, ${bytes.length} bytes`,
  )
}
