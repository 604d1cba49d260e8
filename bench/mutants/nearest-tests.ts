import { readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { importsOf } from '../../test/support/tidy-imports.ts'
import { parseSyntax } from '../../test/support/tidy-syntax.ts'

/**
 * Which tests are nearest to a file? The test of the same name, then tests in the same folder, then the others of `src`;
 * within each group those first that reach the file over the fewest imports. Types are no imports: they load no code.
 */
export class NearestTests {
  readonly #root: string
  readonly #tests: readonly string[]
  readonly #imports = new Map<string, readonly string[]>()
  readonly #hops = new Map<string, ReadonlyMap<string, number>>()

  /** Paths are relative to the root, with `/`. */
  constructor(root: string, tests: readonly string[]) {
    this.#root = root
    this.#tests = tests
  }

  of(file: string, limit: number): string[] {
    const ranked = this.#tests.flatMap((test) => {
      const hops = this.hopsFrom(test).get(file)
      return hops === undefined ? [] : [{ test, group: groupOf(test, file), hops }]
    })
    ranked.sort((a, b) => a.group - b.group || a.hops - b.hops || (a.test < b.test ? -1 : 1))
    return ranked.slice(0, limit).map(({ test }) => test)
  }

  /** All files that a test loads, with the number of imports on the way to each. */
  hopsFrom(test: string): ReadonlyMap<string, number> {
    const known = this.#hops.get(test)
    if (known !== undefined) return known
    const hops = new Map([[test, 0]])
    for (const [file, far] of hops)
      for (const next of this.#importsOf(file)) if (!hops.has(next)) hops.set(next, far + 1)
    this.#hops.set(test, hops)
    return hops
  }

  #importsOf(file: string): readonly string[] {
    const known = this.#imports.get(file)
    if (known !== undefined) return known
    const found = importsOf(parseSyntax(file, readFileSync(join(this.#root, file), 'utf8'))).flatMap(
      ({ specifier, isType }) => {
        if (isType || specifier === undefined || !/^\.\.?\/.*\.ts$/.test(specifier)) return []
        return [relative(this.#root, join(this.#root, dirname(file), specifier)).replaceAll('\\', '/')]
      },
    )
    this.#imports.set(file, found)
    return found
  }
}

const SAME_NAME = 0
const SAME_FOLDER = 1
const ELSEWHERE = 2

function groupOf(test: string, file: string): number {
  if (dirname(test) !== dirname(file)) return ELSEWHERE
  return basename(test).startsWith(`${basename(file, '.ts')}.`) ? SAME_NAME : SAME_FOLDER
}
