#!/usr/bin/env node
// The command `spillway`, whatever Node the shell has: it goes on under the pinned one. Plain ESM for old Nodes.
//
// Under the pinned Node already (as in `npm start`) the command runs in this very process. Otherwise it runs in a child
// that gets our signals and whose exit code is ours. A signal may then arrive twice (from the terminal, which signals
// the whole group, and from us): the server counts signals that come within one blink as one.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bootstrap, needsBootstrap } from '../scripts/bootstrap.mjs'
import { fetchNode } from '../scripts/fetch-node.mjs'
import { nodeToUse, noNodeMessage, pinnedNode, pinnedVersion, recentNode } from '../scripts/pinned-node.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
/** A package that npm installed has JavaScript (`scripts/pack.mjs`), a checkout its sources. */
const packed = join(root, 'src', 'cli', 'cli.js')
const isPackage = existsSync(packed)
const cli = isPackage ? packed : join(root, 'src', 'cli', 'cli.ts')
/** Parsed modules are kept here: a start takes a fifth of the time. Where it cannot be written, nothing is lost. */
const compileCache = isPackage ? undefined : join(root, 'node_modules', '.cache', 'spillway')

if (!isPackage && needsBootstrap(root) && !(await bootstrap(root))) process.exit(1)

const node = isPackage ? (recentNode() ?? (await fetchNode(root))) : nodeToUse(root)
if (node === undefined) {
  process.stderr.write(`${noNodeMessage()}\n`)
  process.exit(1)
}
endWithParent()
if (
  (isPackage && node === process.execPath) ||
  process.versions.node === pinnedVersion(root) ||
  (node === process.execPath && pinnedNode(root) === undefined)
) {
  nodeModule.enableCompileCache?.(compileCache)
  await import(pathToFileURL(cli).href)
} else {
  runChild(node)
}

function runChild(file) {
  const env = { NODE_COMPILE_CACHE: compileCache, ...process.env }
  const child = spawn(file, [cli, ...process.argv.slice(2)], { stdio: 'inherit', env })
  const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of forwarded) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    process.stderr.write(`spillway: could not run ${file} (${error.code}). Remove node_modules and try again.\n`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    // 128 + the signal's number is what a shell reports for a process that a signal ended.
    process.exit(code ?? 128 + (constants.signals[signal] ?? 0))
  })
}

/**
 * npm runs us inside a shell; a SIGTERM to npm is passed on to the shell, which dies of it and tells us nothing. When
 * the shell is gone, we are meant too. Only under npm: whoever starts us in the background may leave.
 */
function endWithParent() {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return
  const parent = process.ppid
  const watching = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watching)
    process.kill(process.pid, 'SIGTERM')
  }, 100)
  watching.unref()
}
