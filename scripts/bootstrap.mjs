// Makes a fresh clone ready to run, then gets out of the way. Plain ESM that Node 18 can read.
//
// What is installed is known by a stamp: the SHA-256 of the lockfile it was installed from. A fresh stamp costs one
// hash and nothing else. `npm start` and `npm test` may run at once in one clone, and `npm ci` deletes node_modules
// before it fills it again: so one process installs, under a lock beside node_modules, and the others wait for it.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { takeLock } from './install-lock.mjs'
import { nodeToUse, noNodeMessage, pinnedNode, pinnedNodeLink } from './pinned-node.mjs'

/** An error that is told to the person in one line, without a stack. */
class Sentence extends Error {}

const stampPath = (root) => join(root, 'node_modules', '.spillway-lock-sha')

function readOrUndefined(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function lockHash(root) {
  const text = readOrUndefined(join(root, 'package-lock.json'))
  return text === undefined ? undefined : createHash('sha256').update(text).digest('hex')
}

/** Nothing is installed, or something from another lockfile. What was put there without us (an image) is trusted. */
export function needsBootstrap(root) {
  if (!existsSync(join(root, 'node_modules'))) return true
  const stamp = readOrUndefined(stampPath(root))
  const hash = lockHash(root)
  return stamp !== undefined && hash !== undefined && stamp !== hash
}

/**
 * Everything is there in the lockfile's version: somebody ran `npm ci` or `npm install`. npm writes its record last,
 * so without one an install broke off; but what the record says may be out of date, so we look for ourselves.
 */
function isInstalledByHand(root) {
  if (!existsSync(join(root, 'node_modules', '.package-lock.json'))) return false
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '' || entry.link) return true
    const manifest = readOrUndefined(join(root, path, 'package.json'))
    if (manifest === undefined) return entry.optional === true || entry.devOptional === true
    return JSON.parse(manifest).version === entry.version
  })
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
  'ci',
  '--include=dev',
  '--include=optional',
  '--no-audit',
  '--no-fund',
  '--no-engine-strict',
  '--loglevel=error',
  '--fetch-retries=3',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=5000',
]

function runNpm(root) {
  const { file, args, shell } = npmCommand()
  return new Promise((resolve, reject) => {
    // npm's own report goes to stderr: stdout may be somebody's JSON.
    const child = spawn(file, [...args, ...NPM_ARGS], { cwd: root, stdio: ['ignore', process.stderr, 'pipe'], shell })
    let said = ''
    child.stderr.on('data', (bytes) => {
      said += bytes
    })
    child.on('error', (error) =>
      reject(new Sentence(`npm could not be run (${error.code}). Install npm and try again.`)),
    )
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Sentence(explainNpm(said, root)))))
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
function isReady(root, hash) {
  if (readOrUndefined(stampPath(root)) === hash) return true
  if (!isInstalledByHand(root) || nodeToUse(root) === undefined) return false
  try {
    dropUnusableNode(root)
    writeStamp(root, hash)
  } catch {
    // A read-only tree: it is compared again next time.
  }
  return true
}

function writeStamp(root, hash) {
  const temporary = `${stampPath(root)}.${process.pid}`
  writeFileSync(temporary, hash)
  renameSync(temporary, stampPath(root))
}

async function install(root, hash) {
  const release = await takeLock(join(root, '.spillway', 'install.lock'), {
    onWait: () => process.stderr.write('spillway: another process is installing dependencies; waiting for it\n'),
  })
  try {
    if (isReady(root, hash)) return
    process.stderr.write('spillway: installing dependencies from the lockfile (first run, about 20 s)\n')
    await runNpm(root)
    dropUnusableNode(root)
    writeStamp(root, hash)
  } finally {
    release()
  }
}

export async function bootstrap(root) {
  try {
    const hash = lockHash(root)
    if (hash === undefined) {
      throw new Sentence(`package-lock.json is missing in ${root}. Restore it with: git checkout package-lock.json`)
    }
    if (!isReady(root, hash)) await install(root, hash)
    if (nodeToUse(root) !== undefined) return true
    process.stderr.write(`${noNodeMessage()}\n`)
  } catch (error) {
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
  process.exitCode = (await bootstrap(join(dirname(self), '..'))) ? 0 : 1
}
