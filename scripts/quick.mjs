// `npm run quick`: the checks between two edits. Types, lint, the project's own rules, and the tests near what changed since
// main. `npm test` and `npm run check` remain what must be green before a commit.
//
// Which tests: those that reach a changed file through imports and start no process, the nearest first, up to TESTS_MAX
// files. Nearest means the fewest imports in between: the test of the file itself, then tests of the files that use it.
// How many related tests were left to `npm test` is printed.
import { spawn, spawnSync } from 'node:child_process'
import { globSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')

/** About half a second of processor time each: with types and lint this stays under a minute on two cores. */
const TESTS_MAX = 40

const RULES = 'test/tidy.test.ts'

const IMPORT = /(?:from|import\()\s*'(\.{1,2}\/[^']+)'|new URL\('(\.{1,2}\/[^']+)'/g

/** A file that imports one of these starts processes, or is made for those that do. */
const STARTS_PROCESSES = /'node:(child_process|cluster)'/

/** The graph of imports: for each file its text's paths of other files, and whether the file starts processes. */
export function importGraph(texts) {
  const graph = new Map()
  for (const [file, text] of texts) {
    const imports = [...text.matchAll(IMPORT)].map(([, from, url]) => normalize(join(dirname(file), from ?? url)))
    graph.set(file, { imports: imports.map((path) => path.replaceAll('\\', '/')), starts: STARTS_PROCESSES.test(text) })
  }
  return graph
}

/** Distance in imports of every file from which a changed file is reached; 0 for a changed file. */
export function distances(graph, changed) {
  const users = new Map()
  for (const [file, { imports }] of graph) {
    for (const path of imports) users.set(path, [...(users.get(path) ?? []), file])
  }
  const found = new Map(changed.filter((file) => graph.has(file)).map((file) => [file, 0]))
  const next = [...found.keys()]
  for (const file of next) {
    for (const user of users.get(file) ?? []) {
      if (found.has(user)) continue
      found.set(user, found.get(file) + 1)
      next.push(user)
    }
  }
  return found
}

/** Whether a test starts processes: it, or a file in `test/` that it imports. Adapters in `src/` may, if asked to. */
export function startsProcesses(graph, test) {
  const seen = new Set([test])
  for (const file of seen) {
    const node = graph.get(file)
    if (node === undefined) continue
    if (node.starts) return true
    for (const path of node.imports) if (path.startsWith('test/')) seen.add(path)
  }
  return false
}

/** The tests to run, nearest first, and how many related ones are left. */
export function testsFor(graph, changed, max = TESTS_MAX) {
  const found = distances(graph, changed)
  const related = [...found.keys()].filter((file) => file.endsWith('.test.ts') && file !== RULES)
  const isQuick = (file) => !/\.long\.test\.ts$|^test\/(e2e|scenarios)\//.test(file) && !startsProcesses(graph, file)
  const quick = related.filter(isQuick).sort((a, b) => found.get(a) - found.get(b) || (a < b ? -1 : 1))
  const tests = quick.slice(0, max)
  return { tests, left: related.length - tests.length }
}

function git(...words) {
  const { status, stdout } = spawnSync('git', words, { cwd: ROOT, encoding: 'utf8' })
  return status === 0 ? stdout.split('\n').filter(Boolean) : undefined
}

/** Changed since the branch left main, committed or not; undefined where there is no main. */
function changedFiles() {
  const base = (git('merge-base', 'HEAD', 'main') ?? git('merge-base', 'HEAD', 'origin/main'))?.[0]
  if (base === undefined) return undefined
  return [...(git('diff', '--name-only', base) ?? []), ...(git('ls-files', '--others', '--exclude-standard') ?? [])]
}

/** Runs a step and resolves to its name, its time and its output. */
function step(name, words) {
  const startedAt = Date.now()
  return new Promise((resolve) => {
    const [file, ...args] = words
    const child = spawn(process.execPath, [join(ROOT, 'node_modules', file), ...args], { cwd: ROOT })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes) => {
        output += bytes
      })
    }
    child.on('error', (error) => resolve({ name, isGood: false, output: String(error), seconds: 0 }))
    child.on('close', (code) => {
      const seconds = (Date.now() - startedAt) / 1_000
      process.stdout.write(`${code === 0 ? 'passed' : 'FAILED'}  ${name} (${seconds.toFixed(0)} s)\n`)
      resolve({ name, isGood: code === 0, output, seconds })
    })
  })
}

async function main() {
  const changed = changedFiles()
  if (changed === undefined) {
    process.stderr.write('spillway: there is no branch main or origin/main to compare with. Run npm test instead.\n')
    return 1
  }
  const files = globSync(['src/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts'], { cwd: ROOT })
  const paths = files.map((file) => file.replaceAll('\\', '/'))
  const graph = importGraph(paths.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]))
  const { tests, left } = testsFor(graph, changed)
  process.stdout.write(
    `${changed.length} files differ from main; ${tests.length} test files are near, ${left} more are left to npm test\n`,
  )
  const startedAt = Date.now()
  const code = changed.filter((file) => /\.(ts|mjs|js)$/.test(file) && globSync(file, { cwd: ROOT }).length > 0)
  // The linters look at the changed files alone: the whole tree takes them half a minute of processor time.
  const checks = async () => {
    const steps = [await step('types', ['typescript/bin/tsc', '--noEmit'])]
    if (code.length === 0) return steps
    steps.push(await step('lint', ['@biomejs/biome/bin/biome', 'check', '--error-on-warnings', ...code]))
    return [...steps, await step('promises', ['oxlint/bin/oxlint', '--type-aware', ...code])]
  }
  const run = ['vitest/vitest.mjs', 'run', '--project=quick', RULES, ...tests]
  const results = (await Promise.all([checks(), step('rules and tests', run)])).flat()
  const failed = results.filter(({ isGood }) => !isGood)
  for (const { name, output } of failed) process.stdout.write(`\n── ${name}\n${output.trim()}\n`)
  const counted = /^ *Tests +(.*)/m.exec(plain(results.at(-1).output))?.[1] ?? 'no test ran'
  const seconds = ((Date.now() - startedAt) / 1_000).toFixed(0)
  process.stdout.write(
    `\nquick ${failed.length === 0 ? 'passed' : `FAILED (${failed.map(({ name }) => name).join(', ')})`} in ${seconds} s: ${counted}; ${left} related test files left to npm test\n`,
  )
  return failed.length === 0 ? 0 : 1
}

/** Without a terminal's colours. */
const plain = (text) => text.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g'), '')

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) process.exitCode = await main()
