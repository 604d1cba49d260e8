/**
 * The process in which mutants are tried: one vitest, whose module loader reads one file as the mutant has it. The tree
 * itself is never changed. Started by `trials.ts`, which speaks with it over the channel of child processes; it ends
 * itself when a mutant takes too much processor time, because a loop without end cannot be stopped in another way.
 */
import { join } from 'node:path'
import { createVitest, type TestCase, type TestSpecification, type Vitest } from 'vitest/node'

export interface Trial {
  /** The file whose text is another one; absent: the tests run as they are. */
  readonly mutant?: { readonly file: string; readonly text: string }
  /** Run in this order until one fails. */
  readonly tests: readonly string[]
  /** No further test file begins when those before have taken this much processor time. */
  readonly cpuMsMax: number
  /** The process ends when the trial has taken this much. */
  readonly cpuMsEnd: number
}

export interface TrialResult {
  /** The first test that fails, or the file that cannot be run. */
  readonly failed: string | undefined
}

/** Milliseconds after which one test counts as hung: virtual time needs none, and a busy machine gives a tenth of a core. */
const TEST_MS_MAX = 15_000
/** Milliseconds between two looks at the processor time. */
const LOOK_MS = 100
/** The exit code after too much processor time. */
const OVERRUN_CODE = 99

class TrialProcess {
  readonly #root = process.cwd()
  #mutant: Trial['mutant']
  #last: string | undefined
  #failed: string | undefined
  #cpuBefore = process.cpuUsage()
  #cpuMsMax = 0
  #vitest: Vitest | undefined
  #specs: ReadonlyMap<string, TestSpecification> = new Map()

  async start(): Promise<void> {
    this.#vitest = await createVitest(
      'test',
      {
        config: false,
        root: this.#root,
        watch: false,
        isolate: false,
        pool: 'threads',
        maxWorkers: 1,
        fileParallelism: false,
        reporters: [
          {
            onTestCaseResult: (test) => this.#endedTest(test),
            onTestModuleEnd: () => {
              if (cpuMsSince(this.#cpuBefore) > this.#cpuMsMax) void this.#vitest!.cancelCurrentRun('test-failure')
            },
          },
        ],
        include: ['src/**/*.test.ts'],
        exclude: ['src/**/*.long.test.ts'],
        setupFiles: ['test/support/property-seed.ts'],
        testTimeout: TEST_MS_MAX,
        hookTimeout: TEST_MS_MAX,
        sequence: { sequencer: InOrder },
      },
      { plugins: [{ name: 'mutant', enforce: 'pre', load: (id) => this.#textOf(id) }] },
    )
    const specs = await this.#vitest.globTestSpecifications()
    this.#specs = new Map(specs.map((spec) => [spec.moduleId, spec]))
  }

  async try({ mutant, tests, cpuMsMax, cpuMsEnd }: Trial): Promise<TrialResult> {
    const vitest = this.#vitest!
    // The mutant before this one is forgotten, too.
    if (this.#last !== undefined) vitest.invalidateFile(this.#last)
    this.#mutant = mutant
    this.#last = mutant === undefined ? undefined : join(this.#root, mutant.file)
    if (this.#last !== undefined) vitest.invalidateFile(this.#last)
    this.#cpuBefore = process.cpuUsage()
    this.#cpuMsMax = cpuMsMax
    const watch = setInterval(() => {
      if (cpuMsSince(this.#cpuBefore) > cpuMsEnd) process.exit(OVERRUN_CODE)
    }, LOOK_MS)
    order = tests.map((test) => join(this.#root, test))
    const specs = order.flatMap((path) => this.#specs.get(path) ?? [])
    this.#failed = undefined
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specs)
    clearInterval(watch)
    // Modules of earlier trials are listed, too.
    const broken = testModules.find((module) => order.includes(module.moduleId) && module.state() === 'failed')
    const failed =
      this.#failed ?? broken?.relativeModuleId ?? (unhandledErrors.length > 0 ? 'an unhandled error' : undefined)
    return { failed }
  }

  /** One failure is enough. The option `bail` would also count those of the mutants before. */
  #endedTest(test: TestCase): void {
    if (this.#failed !== undefined || test.result().state !== 'failed') return
    this.#failed = `${test.module.relativeModuleId} > ${test.fullName}`
    void this.#vitest!.cancelCurrentRun('test-failure')
  }

  #textOf(id: string): string | undefined {
    const mutant = this.#mutant
    return mutant !== undefined && id.split('?')[0] === join(this.#root, mutant.file) ? mutant.text : undefined
  }
}

/** Test files in the order of the trial. */
let order: readonly string[] = []

class InOrder {
  shard(specs: TestSpecification[]): TestSpecification[] {
    return specs
  }

  sort(specs: TestSpecification[]): TestSpecification[] {
    return specs.toSorted((a, b) => order.indexOf(a.moduleId) - order.indexOf(b.moduleId))
  }
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return Math.round((user + system) / 1_000)
}

const trials = new TrialProcess()
await trials.start()
process.on('message', (trial: Trial) => {
  void trials.try(trial).then((result) => process.send!(result))
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')
