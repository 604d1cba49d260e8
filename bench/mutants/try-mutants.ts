import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Mutation, mutated } from './mutations.ts'
import { NearestTests } from './nearest-tests.ts'
import type { TriedMutant } from './report.ts'
import { PROCESS_ENDED, Trials } from './trials.ts'

/** Test files of one mutant: a fault that the nearest ones miss is a hole, even if one far away would see it. */
const TESTS_MAX = 6
/** Milliseconds of processor time after which no further test file begins. */
const CPU_MS_MAX = 6_000
/** Milliseconds of processor time after which a mutant counts as a loop without end: a test file may use 5 s. */
const CPU_MS_END = 20_000

const BOUNDS = { cpuMsMax: CPU_MS_MAX, cpuMsEnd: CPU_MS_END }

const KEPT = 'dist/mutants.json'

interface Kept {
  /** Whether test files pass without a change. */
  readonly tests: Record<string, boolean>
  readonly mutants: Record<string, { readonly caughtBy: string | null }>
}

export class TryMutants {
  readonly #root: string
  readonly #nearest: NearestTests
  readonly #trials: Trials
  readonly #kept: Kept
  readonly #hashes = new Map<string, string>()
  readonly #broken = new Set<string>()

  constructor(root: string, tests: readonly string[], isFresh: boolean) {
    this.#root = root
    this.#nearest = new NearestTests(root, tests)
    this.#trials = new Trials(root)
    this.#kept = isFresh ? { tests: {}, mutants: {} } : this.#read()
  }

  get brokenTests(): readonly string[] {
    return [...this.#broken]
  }

  async try(mutants: readonly Mutation[], say: (text: string) => void): Promise<TriedMutant[]> {
    const tried: TriedMutant[] = []
    for (const mutation of mutants) {
      const tests = this.#nearest.of(mutation.file, TESTS_MAX)
      const caughtBy = await this.#tryOne(mutation, tests)
      tried.push({ ...mutation, caughtBy, tests })
      const caught = tried.filter((mutant) => mutant.caughtBy !== undefined).length
      const what = caughtBy === undefined ? 'SURVIVED' : 'caught'
      say(`${tried.length}/${mutants.length} ${what} ${mutation.file}:${mutation.line} (${caught} caught)`)
    }
    return tried
  }

  close(): Promise<void> {
    return this.#trials.close()
  }

  async #tryOne(mutation: Mutation, tests: readonly string[]): Promise<string | undefined> {
    if (tests.length === 0) return undefined
    const text = mutated(readFileSync(join(this.#root, mutation.file), 'utf8'), mutation)
    const key = hashOf([mutation.file, text, ...tests.map((path) => this.#hashOfTest(path))])
    const known = this.#kept.mutants[key]
    if (known !== undefined) return known.caughtBy ?? undefined
    const mutant = { file: mutation.file, text }
    let sound = tests
    let failed: string | undefined
    do {
      sound = sound.filter((path) => !this.#broken.has(path))
      failed = (await this.#trials.try({ mutant, tests: sound, ...BOUNDS })).failed
    } while (failed !== undefined && !(await this.#passUnchanged(failed, sound)))
    this.#kept.mutants[key] = { caughtBy: failed ?? null }
    this.#write()
    return failed
  }

  /** A test that fails without any change catches nothing: it is left out from then on. */
  async #passUnchanged(failed: string, tests: readonly string[]): Promise<boolean> {
    const suspects = tests.filter((path) => failed === PROCESS_ENDED || failed.startsWith(path))
    let isSound = true
    for (const path of suspects) {
      const key = this.#hashOfTest(path)
      this.#kept.tests[key] ??= (await this.#trials.try({ tests: [path], ...BOUNDS })).failed === undefined
      if (this.#kept.tests[key]) continue
      this.#broken.add(path)
      isSound = false
    }
    return isSound
  }

  /** Of the test and of everything that it loads. */
  #hashOfTest(path: string): string {
    const known = this.#hashes.get(path)
    if (known !== undefined) return known
    const files = [...this.#nearest.hopsFrom(path).keys()].sort()
    const hash = hashOf(files.flatMap((file) => [file, readFileSync(join(this.#root, file), 'utf8')]))
    this.#hashes.set(path, hash)
    return hash
  }

  #read(): Kept {
    try {
      return JSON.parse(readFileSync(join(this.#root, KEPT), 'utf8')) as Kept
    } catch {
      return { tests: {}, mutants: {} }
    }
  }

  #write(): void {
    mkdirSync(dirname(join(this.#root, KEPT)), { recursive: true })
    writeFileSync(join(this.#root, KEPT), JSON.stringify(this.#kept))
  }
}

function hashOf(parts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part).update('\0')
  return hash.digest('hex')
}
