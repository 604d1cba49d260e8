// A third of what production packages unpack is read by no program here: it is deleted after an install. The same files go
// after an install with the development packages, so that a file that is missed fails in everybody's tests. Manifests
// stay, by which an install is recognised. Plain ESM that Node 18 can read.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Node reads source maps only with a flag that is not used here; the console's pages are served without them. */
const EVERYWHERE = [/\.map$/]

/** Patterns of paths below the package's folder. Figures are sizes on a disk. */
const BY_PACKAGE = {
  // Only the vocabulary o200k, as an ES module: 27 of 30 MB are other vocabularies, models and forms of them.
  'gpt-tokenizer': [/^(cjs|data|src|esm\/model|esm\/fixtures)$/, /^esm\/bpeRanks\/(?!o200k_base\.).*\.js$/],
  // The database is imported as an ES module, and its only extension, pgvector, is a package of its own: 3 MB.
  '@electric-sql/pglite': [/\.cjs$/, /^dist\/[^/]+\.tar\.gz$/],
}

/** `paths`: of packages below `root`, such as `node_modules/pg`. */
export function deleteUnread(root, paths) {
  for (const path of paths) {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    deleteIn(join(root, path), '', [...EVERYWHERE, ...(BY_PACKAGE[name] ?? [])])
  }
}

function deleteIn(folder, below, patterns) {
  for (const entry of entriesOf(join(folder, below))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (patterns.some((pattern) => pattern.test(path))) rmSync(join(folder, path), { recursive: true, force: true })
    else if (entry.isDirectory() && entry.name !== 'node_modules') deleteIn(folder, path, patterns)
  }
}

/** An optional package may not be there. */
function entriesOf(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
