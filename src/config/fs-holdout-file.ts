import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Static } from 'typebox'
import { isValid } from '../base/check-schema.ts'
import { holdoutProblem } from './cross-check.ts'
import type { Problem } from './explain.ts'
import type { Settings } from './schema.ts'
import { HoldoutItemSchema } from './schema-rollout.ts'

/** Reads the items of holdout files into the configuration; a file's path is relative to the configuration file. */
type Item = Static<typeof HoldoutItemSchema>

/** As many as a set may have in the configuration itself. */
const ITEMS_MAX = 10_000

export function withHoldoutItems(settings: Settings, configPath: string | undefined) {
  const problems: Problem[] = []
  const models = settings.models.map((model, i) => {
    const { rollout } = model
    const name = rollout?.holdout?.file
    if (rollout?.holdout === undefined || name === undefined) return model
    const path = ['models', i, 'rollout', 'holdout', 'file']
    const items = readItems(resolve(dirname(configPath ?? '.'), name), (text) => problems.push({ path, text }))
    const holdout = { ...rollout.holdout, items: [...rollout.holdout.items, ...items] }
    return { ...model, rollout: { ...rollout, holdout } }
  })
  return { settings: { ...settings, models }, problems }
}

function readItems(path: string, complain: (text: string) => void): Item[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    complain(`is ${path}, which cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`)
    return []
  }
  const lines = text.split('\n').flatMap((line, i) => (line.trim() === '' ? [] : [{ line, number: i + 1 }]))
  if (lines.length > ITEMS_MAX) complain(`has ${lines.length} items; at most ${ITEMS_MAX} are used`)
  return lines.slice(0, ITEMS_MAX).flatMap(({ line, number }) => {
    const item = parse(line)
    if (item === undefined) complain(`has no item on line ${number}: {"id": …, "prompt": …, "expected": …}`)
    const problem = item === undefined ? undefined : holdoutProblem(item)
    if (problem !== undefined) complain(`has an item on line ${number} that ${problem}`)
    return item === undefined || problem !== undefined ? [] : [item]
  })
}

function parse(line: string): Item | undefined {
  try {
    const item: unknown = JSON.parse(line)
    return isValid(HoldoutItemSchema, item) ? item : undefined
  } catch {
    return undefined
  }
}
