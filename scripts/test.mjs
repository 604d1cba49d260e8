// `npm test`, and with --long as the first word `npm run test:long`: vitest under the pinned Node, with a plain last line
// that people and machines can read: "N passed, N failed", then ", N skipped" if any were. Further arguments go to vitest
// as they are.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeToUse, noNodeMessage } from './pinned-node.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const node = nodeToUse(root)
if (node === undefined) {
  process.stderr.write(`${noNodeMessage()}\n`)
  process.exit(1)
}

const folder = mkdtempSync(join(tmpdir(), 'spillway-test-'))
const resultsPath = join(folder, 'results.json')
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const [first, ...rest] = process.argv.slice(2)
const isLong = first === '--long'
const args = [
  'run',
  ...(isLong ? ['--project=long', '--project=calm'] : ['--project=quick']),
  '--reporter=default',
  '--reporter=json',
  '--reporter=./test/support/cpu-budget-reporter.ts',
  `--outputFile.json=${resultsPath}`,
  ...(isLong ? rest : process.argv.slice(2)),
]
const child = spawn(node, [vitest, ...args], { cwd: root, stdio: 'inherit' })
// Ctrl-C reaches vitest by itself; we stay to say the last line.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
const status = await new Promise((resolve) =>
  child.on('close', (code) => resolve(code ?? 1)).on('error', () => resolve(1)),
)

const counts = readCounts()
rmSync(folder, { recursive: true, force: true })
// A file that did not load, or an error outside any test, fails the run without failing a test: it is counted as one.
if (status !== 0 && counts.failed === 0) counts.failed = 1
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed${skipped}\n`)
process.exitCode = status === 0 && counts.failed === 0 ? 0 : status || 1

function readCounts() {
  try {
    const results = JSON.parse(readFileSync(resultsPath, 'utf8'))
    const brokenFiles = results.testResults.filter(
      (file) => file.status === 'failed' && file.assertionResults.length === 0,
    )
    return {
      passed: results.numPassedTests,
      failed: results.numFailedTests + brokenFiles.length,
      skipped: results.numPendingTests + results.numTodoTests,
    }
  } catch {
    return { passed: 0, failed: 0, skipped: 0 }
  }
}
