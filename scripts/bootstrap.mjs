// Makes a fresh clone ready to run, then gets out of the way. Plain ESM that Node 18 can read.
//
// usage: node scripts/bootstrap.mjs [all]
//
// Without `all` only production packages are installed. Packages are never taken away: a tree that has them all keeps them
// all. What is installed is known by a stamp (`package-sets.mjs`); a fresh stamp costs one hash and nothing else. `npm
// start` and `npm test` may run at once in one clone: one process installs, under a lock beside node_modules, and the
// others wait for it. Missing packages are added to those that are there, because a server may be running on them.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, realpathSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { takeLock } from './install-lock.mjs'
import { reportProgress } from './install-progress.mjs'
import {
  includesSet,
  lockedPackages,
  lockHash,
  npmRecordPath,
  packagesOfSet,
  readStamp,
  setBefore,
  setInstalledByHand,
  stampPath,
  writeStamp,
} from './package-sets.mjs'
import { nodeToUse, noNodeMessage, pinnedNode, pinnedNodeLink } from './pinned-node.mjs'
import { deleteUnread } from './unread-files.mjs'

/** An error that is told to the person in one line, without a stack. */
class Sentence extends Error {}

/** A signal ended the install. The next start does it again. */
class Stopped extends Error {}

/** There while npm fills node_modules: what an install that was broken off has left is looked at before it is used. */
const unfinishedPath = (root) => join(root, '.spillway', 'install-unfinished')

/** Nothing is installed, or something from another lockfile. What was put there without us (an image) is trusted. */
export function needsBootstrap(root) {
  if (!existsSync(join(root, 'node_modules')) || existsSync(unfinishedPath(root))) return true
  const stamp = readStamp(root)
  const hash = lockHash(root)
  return stamp !== undefined && hash !== undefined && stamp.hash !== hash
}

export function npmCommand() {
  // Under npm the path of its CLI is given; under npx it is npx's, whose neighbour npm's is.
  const given = process.env.npm_execpath
  if (given !== undefined && /^np[mx]-cli\.[cm]?js$/.test(basename(given))) {
    const cli = join(dirname(given), basename(given).replace('npx', 'npm'))
    if (existsSync(cli)) return { file: process.execPath, args: [cli], shell: false }
  }
  return { file: 'npm', args: [], shell: process.platform === 'win32' }
}

/** Retries are few and short: a person without a network should read so in seconds, not minutes. */
const NPM_ARGS = [
  '--include=optional',
  '--no-audit',
  '--no-fund',
  '--no-engine-strict',
  '--loglevel=error',
  '--fetch-retries=3',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=5000',
]

function runNpm(root, words) {
  const { file, args, shell } = npmCommand()
  return new Promise((resolve, reject) => {
    const child = spawn(file, [...args, ...words, ...NPM_ARGS], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      shell,
    })
    // npm ends what it has begun; two npm at once in one node_modules would break each other's work.
    let stopped
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    const stop = (signal) => {
      stopped = signal
      child.kill(signal)
    }
    for (const signal of signals) process.on(signal, stop)
    let said = ''
    child.stderr.on('data', (bytes) => {
      said += bytes
    })
    child.on('error', (error) =>
      reject(new Sentence(`npm could not be run (${error.code}). Install npm and try again.`)),
    )
    child.on('close', (code) => {
      for (const signal of signals) process.off(signal, stop)
      if (stopped !== undefined) reject(new Stopped(stopped))
      else if (code === 0) resolve()
      else reject(new Sentence(explainNpm(said, root)))
    })
  })
}

export function explainNpm(said, root) {
  if (/\b(EACCES|EPERM|EROFS)\b/.test(said)) {
    return `could not install dependencies: no permission to write in ${root} or in npm's cache. Give this user write access to both, then run the command again.`
  }
  if (/\bENOSPC\b/.test(said)) {
    return `could not install dependencies: the disk is full. Free about 1 GB, then run the command again.`
  }
  if (
    /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/.test(said)
  ) {
    return 'could not install dependencies: the npm registry cannot be reached. Check the network (or npm\u2019s proxy and registry settings), then run the command again.'
  }
  const lines = said
    .split('\n')
    .map((line) => line.replace(/^npm (error|ERR!)\s*(code )?/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('A complete log'))
  return `could not install dependencies: npm ci failed (${lines.slice(0, 2).join('; ') || 'it gave no reason'}). Run "npm ci" in ${root} to see more.`
}

/** A binary that is there may still not run here (a musl system, say): then it must not come first on the PATH. */
function dropUnusableNode(root) {
  const path = pinnedNode(root)
  if (path !== undefined && spawnSync(path, ['--version']).status !== 0) rmSync(pinnedNodeLink(root), { force: true })
}

/** A fresh stamp, or what is there is what the lockfile says: then it gets its stamp, where one can be written. */
function isReady(root, hash, set) {
  const stamp = readStamp(root)
  if (stamp?.hash === hash && includesSet(stamp.set, set)) return true
  if (nodeToUse(root) === undefined) return false
  const present = setInstalledByHand(root)
  if (present === undefined || !includesSet(present, set)) return false
  try {
    dropUnusableNode(root)
    finish(root, hash, present)
  } catch {
    // A read-only tree: it is compared again next time.
  }
  return true
}

function finish(root, hash, set) {
  writeStamp(root, { hash, set })
  rmSync(unfinishedPath(root), { force: true })
}

/** Deletes node_modules and fills it. First goes what says that it is complete. */
async function fill(root, hash, set) {
  mkdirSync(dirname(unfinishedPath(root)), { recursive: true })
  writeFileSync(unfinishedPath(root), hash)
  for (const path of [stampPath(root), npmRecordPath(root)]) rmSync(path, { force: true })
  await runNpm(root, ['ci', set === 'all' ? '--include=dev' : '--omit=dev'])
}

/**
 * Adds the development packages to the production packages, which are not touched: a server may be reading them. npm takes
 * its record of them as true if nothing in node_modules is newer; the stamp and deleted files are.
 */
async function addTheRest(root, hash) {
  writeStamp(root, { hash, set: 'production', isAdding: true })
  const now = new Date()
  utimesSync(npmRecordPath(root), now, now)
  await runNpm(root, ['install', '--no-save', '--include=dev'])
}

function isProductionThere(root, hash) {
  const stamp = readStamp(root)
  if (stamp === undefined) return setInstalledByHand(root) === 'production'
  return stamp.hash === hash && !stamp.isAdding && existsSync(npmRecordPath(root))
}

async function install(root, hash, wanted) {
  const release = await takeLock(join(root, '.spillway', 'install.lock'), {
    onWait: () => process.stderr.write('spillway: another process is installing dependencies; waiting for it\n'),
  })
  try {
    if (isReady(root, hash, wanted)) return
    const set = includesSet(setBefore(root), wanted) ? setBefore(root) : wanted
    const packages = lockedPackages(root)
    const pathsOf = (one) => packagesOfSet(packages, one).map(([path]) => path)
    const end = reportProgress(root, pathsOf(set), set, process.stderr)
    let isDone = false
    try {
      await (isProductionThere(root, hash) ? addTheRest(root, hash) : fill(root, hash, set))
      deleteUnread(root, pathsOf('production'))
      isDone = true
    } finally {
      end(isDone)
    }
    dropUnusableNode(root)
    finish(root, hash, set)
  } finally {
    release()
  }
}

/** `set`: `production`, which is enough to serve, or `all`. Resolves to whether Spillway can run. */
export async function bootstrap(root, set = 'production') {
  try {
    const hash = lockHash(root)
    if (hash === undefined) {
      throw new Sentence(`package-lock.json is missing in ${root}. Restore it with: git checkout package-lock.json`)
    }
    if (!isReady(root, hash, set)) await install(root, hash, set)
    if (nodeToUse(root) !== undefined) return true
    process.stderr.write(`${noNodeMessage()}\n`)
  } catch (error) {
    if (error instanceof Stopped) process.exit(128 + constants.signals[error.message])
    process.stderr.write(`spillway: ${error instanceof Sentence ? error.message : explainFileError(error, root)}\n`)
  }
  return false
}

function explainFileError(error, root) {
  if (['EACCES', 'EPERM', 'EROFS'].includes(error?.code)) {
    return `no permission to write ${error.path ?? root}. Give this user write access to ${root}, then run the command again.`
  }
  return `could not prepare ${root}: ${error?.message ?? error}. Remove node_modules and run the command again.`
}

const self = fileURLToPath(import.meta.url)
if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === self) {
  process.exitCode = (await bootstrap(join(dirname(self), '..'), process.argv[2])) ? 0 : 1
}
