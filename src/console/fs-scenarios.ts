import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfigFile } from '../config/fs-config-file.ts'

/** Scenarios that come with the program, for "what if". Only their names are read until one is asked for. */
const FOLDER = join(import.meta.dirname, '..', '..', 'scenarios')
const ENDING = '.yaml'

export function scenarioNames(): readonly string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(ENDING))
    .map((name) => name.slice(0, -ENDING.length))
    .sort()
}

/** Undefined when there is none of this name: names are compared with the list, so no path gets through. */
export function readScenarioTree(name: string): unknown {
  return scenarioNames().includes(name) ? readConfigFile(join(FOLDER, name + ENDING)).tree : undefined
}

/** A scenario for one comparison. JSON is YAML. */
export function writeScenario(folder: string, tree: unknown): string {
  const path = join(folder, `scenario${ENDING}`)
  writeFileSync(path, JSON.stringify(tree), { mode: 0o600 })
  return path
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
