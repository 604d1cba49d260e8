// Which packages are installed? `production` is what `npm start` needs; `all` adds what tests and tools need. The answer
// is kept in a stamp: the SHA-256 of the lockfile, then the set. Plain ESM that Node 18 can read.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The word in a stamp while packages are added to a complete set: those that are there already stay usable. */
const ADDING = 'adding'

export const stampPath = (root) => join(root, 'node_modules', '.spillway-lock-sha')
export const npmRecordPath = (root) => join(root, 'node_modules', '.package-lock.json')

export function readOrUndefined(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

export function lockHash(root) {
  const text = readOrUndefined(join(root, 'package-lock.json'))
  return text === undefined ? undefined : createHash('sha256').update(text).digest('hex')
}

export const lockedPackages = (root) => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages

/** A stamp of earlier versions is a hash alone: they installed everything. */
export function readStamp(root) {
  const [hash, set = 'all', state] = (readOrUndefined(stampPath(root)) ?? '').split(' ')
  return hash === '' ? undefined : { hash, set, isAdding: state === ADDING }
}

export function writeStamp(root, { hash, set, isAdding = false }) {
  const temporary = `${stampPath(root)}.${process.pid}`
  writeFileSync(temporary, [hash, set, ...(isAdding ? [ADDING] : [])].join(' '))
  renameSync(temporary, stampPath(root))
}

export const includesSet = (present, wanted) => present === 'all' || present === wanted

/** The C library by which npm chooses packages on Linux. */
function libcHere() {
  if (process.platform !== 'linux') return undefined
  return process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'glibc'
}

/** [path, entry] of each package of a set; without those for other platforms, which npm leaves out. */
export function packagesOfSet(packages, set, { platform, arch, libc = libcHere() } = process) {
  const fits = (words, word) => {
    if (words === undefined) return true
    const list = [words].flat()
    return list.includes(word) || (list.every((one) => one.startsWith('!')) && !list.includes(`!${word}`))
  }
  return Object.entries(packages).filter(
    ([path, entry]) =>
      path !== '' &&
      entry.link !== true &&
      (set === 'all' || entry.dev !== true) &&
      fits(entry.os, platform) &&
      fits(entry.cpu, arch) &&
      (libc === undefined || fits(entry.libc, libc)),
  )
}

/**
 * The set that is completely there in the lockfile's versions, because somebody ran `npm ci` or `npm install`. npm writes
 * its record last, so without one an install broke off; but the record may be out of date, so the packages are compared.
 */
export function setInstalledByHand(root) {
  if (!existsSync(npmRecordPath(root)) || readStamp(root)?.isAdding) return undefined
  const packages = lockedPackages(root)
  const isThere = ([path, entry]) => {
    const manifest = readOrUndefined(join(root, path, 'package.json'))
    if (manifest === undefined) return entry.optional === true || entry.devOptional === true
    return JSON.parse(manifest).version === entry.version
  }
  return ['all', 'production'].find((set) => packagesOfSet(packages, set).every(isThere))
}

/** The set that this tree had, whatever its lockfile was: a tree with tools keeps having them. */
export function setBefore(root) {
  const stamp = readStamp(root)
  if (stamp !== undefined) return stamp.isAdding ? 'all' : stamp.set
  const record = readOrUndefined(npmRecordPath(root))
  if (record === undefined) return undefined
  return Object.values(JSON.parse(record).packages).some((entry) => entry.dev === true) ? 'all' : 'production'
}
