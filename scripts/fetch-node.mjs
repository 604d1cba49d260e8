// The pinned Node for a package that npm installed under an older Node: fetched once by npm, kept in the user's cache.
// Plain ESM that Node 18 can read. Nothing is fetched where this Node is recent enough.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { npmCommand } from './bootstrap.mjs'
import { takeLock } from './install-lock.mjs'
import { nodeIn, nodePackage, pinnedVersion } from './pinned-node.mjs'

const say = (text) => process.stderr.write(`spillway: ${text}\n`)

/** The path of its executable, or undefined after saying why there is none. */
export async function fetchNode(root, { cache, name } = { cache: cacheFolder(), name: nodePackage() }) {
  if (name === undefined) return undefined
  const version = pinnedVersion(root)
  const folder = join(cache, `node-${version}`)
  const path = nodeIn(join(folder, 'node_modules'), name)
  if (existsSync(path)) return path
  try {
    mkdirSync(cache, { recursive: true })
    const release = await takeLock(join(cache, 'node.lock'), { onWait: () => say('waiting for another install') })
    try {
      if (!existsSync(path)) await install(folder, `${name}@${version}`)
    } finally {
      release()
    }
  } catch (error) {
    say(`Node ${version} could not be fetched (${error.message}). Install Node 24 or newer and try again.`)
    return undefined
  }
  return existsSync(path) ? path : undefined
}

/** An install that breaks off leaves nothing that looks whole. */
async function install(folder, wanted) {
  say(`this is Node ${process.versions.node}; fetching ${wanted} once, into ${folder}`)
  const partial = `${folder}.partial`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { recursive: true })
  await runNpm(['install', '--prefix', partial, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', wanted])
  rmSync(folder, { recursive: true, force: true })
  renameSync(partial, folder)
}

function runNpm(words) {
  const { file, args, shell } = npmCommand()
  return new Promise((resolve, reject) => {
    const child = spawn(file, [...args, ...words], { stdio: ['ignore', 'ignore', 'inherit'], shell })
    child.on('error', (error) => reject(new Error(`npm could not be run: ${error.code}`)))
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`npm ended with ${code}`))))
  })
}

function cacheFolder() {
  const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env
  return join(XDG_CACHE_HOME || LOCALAPPDATA || join(homedir(), '.cache'), 'spillway')
}
