import { isUtf8 } from 'node:buffer'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, extname, join, relative } from 'node:path'
import { UsageError } from './command.ts'

/** Documents of a file or a folder: a text or Markdown file is one document, a JSON Lines file has one per line. */
export interface FoundDocument {
  readonly name: string
  readonly text: string
  readonly attributes?: Readonly<Record<string, string | number | boolean>>
}

const READABLE = new Set(['.txt', '.md', '.markdown', '.jsonl', '.rst', '.text'])

export function* documentsIn(path: string): Generator<FoundDocument> {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw new UsageError(`${path} does not exist.`)
  if (!stat.isDirectory()) {
    yield* documentsOf(path, basename(path))
    return
  }
  const files = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && READABLE.has(extname(entry.name).toLowerCase()))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  for (const file of files) yield* documentsOf(file, relative(path, file))
}

function* documentsOf(path: string, name: string): Generator<FoundDocument> {
  const bytes = readFileSync(path)
  // Binary data would fill the index with useless terms.
  if (!isUtf8(bytes)) throw new UsageError(`${name} is not text in UTF-8. Convert it, or leave it out.`)
  const text = bytes.toString('utf8')
  if (extname(path).toLowerCase() !== '.jsonl') {
    if (text.trim() !== '') yield { name, text }
    return
  }
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() !== '') yield lineDocument(line, `${name}:${i + 1}`)
  }
}

/** The text is in `text`, `content` or `body`, the name in `name`, `title` or `id`; `attributes` are optional. */
function lineDocument(line: string, name: string): FoundDocument {
  let row: Record<string, unknown> | null
  try {
    row = JSON.parse(line) as Record<string, unknown> | null
  } catch {
    throw new UsageError(`${name} is not JSON.`)
  }
  if (typeof row !== 'object' || row === null || Array.isArray(row))
    throw new UsageError(`${name} is not a JSON object.`)
  const fields = row
  const first = (...keys: string[]): string | undefined => {
    const found = keys.map((key) => fields[key]).find((value) => typeof value === 'string' && value !== '')
    return found as string | undefined
  }
  const text = first('text', 'content', 'body')
  if (text === undefined) throw new UsageError(`${name} has no "text".`)
  const attributes = fields['attributes'] as FoundDocument['attributes']
  return { name: first('name', 'title', 'id') ?? name, text, ...(attributes && { attributes }) }
}
