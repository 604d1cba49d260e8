import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from './child.ts'

/**
 * The project as somebody would have cloned it, in another folder, with everything installed: packages are links to
 * ours, so that nothing is fetched and nothing that runs there can touch our own.
 */
export function copyOfTree(folder: string): void {
  for (const path of trackedFiles()) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(ROOT, path), join(folder, path))
  }
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (name === '.cache' || name === '.spillway-lock-sha') continue
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  const lock = readFileSync(join(folder, 'package-lock.json'))
  writeFileSync(join(modules, '.spillway-lock-sha'), createHash('sha256').update(lock).digest('hex'))
}

/** Tracked, or about to be; without what has been deleted. */
export function trackedFiles(): string[] {
  const list = (...flags: string[]): string[] =>
    execFileSync('git', ['ls-files', '-z', ...flags], { cwd: ROOT, encoding: 'utf8' })
      .split('\0')
      .filter(Boolean)
  const deleted = new Set(list('--deleted'))
  return list('--cached', '--others', '--exclude-standard').filter((path) => !deleted.has(path))
}
