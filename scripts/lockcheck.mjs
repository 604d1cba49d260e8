// Is the lockfile good for everybody? usage: node scripts/lockcheck.mjs [package-lock.json]
//
// Three faults pass unnoticed on the machine that made it and break another: an optional binary of another platform
// without an entry (`npm ci` then fails there), a download address (it may name a mirror that only we can reach), and
// an install script (it runs foreign code on `npm ci`, and is skipped where scripts are switched off).
import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export function lockProblems(lock) {
  const packages = lock.packages ?? {}
  return Object.entries(packages).flatMap(([path, entry]) => [
    ...missingOptional(packages, path, entry),
    ...(entry.resolved === undefined || entry.link ? [] : [`${path} names a download address (${entry.resolved})`]),
    ...(path === '' || entry.link || entry.integrity !== undefined ? [] : [`${path} has no integrity hash`]),
    ...(entry.hasInstallScript ? [`${path} has an install script`] : []),
  ])
}

function missingOptional(packages, path, entry) {
  const wanted = Object.keys(entry.optionalDependencies ?? {})
  return wanted
    .filter((name) => !isFound(packages, path, name))
    .map((name) => `${path || 'the project'} lacks an entry for ${name}`)
}

/** Node's own lookup: beside, then in each folder above. */
function isFound(packages, path, name) {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))) {
    if (packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`] !== undefined) return true
    if (at === '') return false
  }
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const path = process.argv[2] ?? 'package-lock.json'
  const lock = JSON.parse(readFileSync(path, 'utf8'))
  const problems = lockProblems(lock)
  for (const problem of problems) console.error(`${path}: ${problem}`)
  console.log(`${path}: ${Object.keys(lock.packages).length - 1} packages, ${problems.length} problems`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
