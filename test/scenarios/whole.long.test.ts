import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** Every shipped scenario as it is shipped: all loads, all variants, to the end. */
const FOLDER = join(import.meta.dirname, '..', '..', 'scenarios')

/** Scenarios that are not run here, and the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'large-fleet': '1,000 replicas: 76 CPU-seconds. `bench/experiments/internet-scale.ts` runs it.',
}

const NAMES = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.yaml'))
  .map((file) => file.replace('.yaml', ''))
  .filter((name) => ELSEWHERE[name] === undefined)

describe('whole scenarios', () => {
  it.each(NAMES)('%s', { timeout: 240_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1))).toEqual([])
  })

  it('leaves out only scenarios that exist', () => {
    for (const name of Object.keys(ELSEWHERE)) expect(readdirSync(FOLDER)).toContain(`${name}.yaml`)
  })
})
