// How far is an install, and how long will it still take? npm does not say, so the packages in node_modules are compared
// with those that the lockfile expects. Plain ESM that Node 18 can read.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What npm unpacks, measured on Linux x64 (a lockfile has no sizes). Other platforms differ by a few per cent; where more
 * comes than expected, the figure is raised to what is there. A test compares them with what is installed.
 */
export const EXPECTED = {
  production: { bytes: 312e6, files: 9_800 },
  all: { bytes: 717e6, files: 36_500 },
}

/**
 * The share of the time that goes by until the small packages are there. npm unpacks packages side by side, so those
 * come first and the large ones nearly at the end; without the share the estimate is five times too long at first.
 * Measured against npm's processor time for the production set: right within a factor of two between a fifth and nine tenths
 * of the way. On a machine that gets busier meanwhile, and early while packages are added, it was up to 3.4 times too long.
 */
const PACKAGES_SHARE = 0.3

/** Before a tenth is done, the pace is that of npm's preparations and says nothing. */
const FRACTION_MIN = 0.1

/** The line of a terminal is drawn this often, and a log gets a line this often. */
const DRAW_MS = 500
const LOG_MS = 5_000

/** How much of the work is done, 0 to 1. */
export function fractionDone({ packages, bytes, files }, expected) {
  const of = (part, whole) => Math.min(1, part / Math.max(whole, 1))
  const unpacked = (of(bytes, expected.bytes) + of(files, expected.files)) / 2
  return PACKAGES_SHARE * of(packages, expected.packages) + (1 - PACKAGES_SHARE) * unpacked
}

/** Seconds left at the pace since the start, when `from` was done already; undefined while there is no pace yet. */
export function secondsLeft(fraction, from, elapsedS) {
  const done = fraction - from
  if (done < FRACTION_MIN * (1 - from)) return undefined
  return Math.max(1, Math.round(((1 - fraction) / done) * elapsedS))
}

export function progressLine(seen, expected, left) {
  const megabytes = Math.round(seen.bytes / 1e6)
  const total = Math.max(megabytes, Math.round(expected.bytes / 1e6))
  const estimate = left === undefined ? '' : `, about ${left} s left`
  return `spillway: installing: ${seen.packages} of ${expected.packages} packages, ${megabytes} of ${total} MB${estimate}`
}

/** Looks at the packages at these paths. A package that has not grown between two looks is not walked again. */
export class PackageMeter {
  #root
  #paths
  #sizes = new Map()

  constructor(root, paths) {
    this.#root = root
    this.#paths = paths
  }

  look() {
    const sum = { packages: 0, bytes: 0, files: 0 }
    for (const path of this.#paths) {
      const size = this.#sizeOf(path)
      if (size === undefined) continue
      sum.packages++
      sum.bytes += size.bytes
      sum.files += size.files
    }
    return sum
  }

  #sizeOf(path) {
    const before = this.#sizes.get(path)
    if (before?.isSettled) return before
    const folder = join(this.#root, path)
    if (!existsSync(join(folder, 'package.json'))) return undefined
    const now = sizeOfPackage(folder)
    now.isSettled = now.bytes > 0 && now.bytes === before?.bytes && now.files === before.files
    this.#sizes.set(path, now)
    return now
  }
}

/** Bytes and files of a folder, without the packages below it. */
export function sizeOfPackage(folder) {
  const sum = { bytes: 0, files: 0 }
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (entry.name === 'node_modules') continue
      const { bytes, files } = sizeOfPackage(path)
      sum.bytes += bytes
      sum.files += files
    } else if (entry.isFile()) {
      sum.bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0
      sum.files++
    }
  }
  return sum
}

/** npm moves folders while we look. */
function entriesOf(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

/** Reports on `stream` until the function that it returns is called with the last words. */
export function reportProgress(root, paths, set, stream) {
  const expected = { ...EXPECTED[set], packages: paths.length }
  const meter = new PackageMeter(root, paths)
  const startedAt = Date.now()
  let from
  const draw = () => {
    const seen = meter.look()
    const fraction = fractionDone(seen, expected)
    from ??= fraction
    const line = progressLine(seen, expected, secondsLeft(fraction, from, (Date.now() - startedAt) / 1_000))
    stream.write(stream.isTTY ? `\r\x1b[K${line}` : `${line}\n`)
  }
  draw()
  const drawing = setInterval(draw, stream.isTTY ? DRAW_MS : LOG_MS)
  return (isDone) => {
    clearInterval(drawing)
    if (stream.isTTY) stream.write('\r\x1b[K')
    const seconds = Math.round((Date.now() - startedAt) / 1_000)
    if (isDone) stream.write(`spillway: ${meter.look().packages} packages are installed (${seconds} s)\n`)
  }
}
