import { readFileSync } from 'node:fs'
import { isMap, isScalar, LineCounter, type Node, parseDocument } from 'yaml'
import { ConfigError } from './config-error.ts'
import { isObject, type Path, type Problem } from './explain.ts'

/** A configuration file: its settings, and the line of each. */
export interface ConfigFile {
  readonly path: string
  readonly tree: Record<string, unknown>
  lineOf(problem: Problem): number | undefined
}

export function readConfigFile(path: string): ConfigFile {
  return parseConfigFile(path, readText(path))
}

export function parseConfigFile(path: string, text: string): ConfigFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true })
  if (document.errors.length > 0) {
    throw new ConfigError(
      document.errors.map(
        (error) => `${path}:${lines.linePos(error.pos[0]).line}: not valid YAML: ${sentence(error.message)}`,
      ),
    )
  }
  const tree: unknown = document.toJS() ?? {}
  if (!isObject(tree)) throw new ConfigError([`${path}:1: not a configuration. Write it as "name: value" lines.`])

  const lineOfNode = (node: unknown): number | undefined => {
    const range = (node as Node | undefined)?.range
    return range ? lines.linePos(range[0]).line : undefined
  }
  const lineOf = ({ path: at, isAboutKey }: Problem): number | undefined => {
    // The line of a setting is that of its name; an item of a list has no name, so its value's line counts.
    const line = lineOfNode(keyNode(document.getIn(at.slice(0, -1), true), at)) ?? lineOfNode(document.getIn(at, true))
    return line ?? (at.length === 0 || isAboutKey ? undefined : lineOf({ path: at.slice(0, -1), text: '' }))
  }
  return { path, tree, lineOf }
}

function keyNode(parent: unknown, path: Path): unknown {
  const key = path[path.length - 1]
  return isMap(parent) ? parent.items.find((pair) => isScalar(pair.key) && pair.key.value === key)?.key : undefined
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = REASONS[code ?? ''] ?? `It cannot be read (${code}).`
    throw new ConfigError([`${path}: ${why}`])
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'There is no such file. Check the path given with --config or SPILLWAY_CONFIG.',
  EACCES: 'No permission to read it. Make it readable for this user.',
  EISDIR: 'This is a folder. Give the path of a YAML file.',
}

const sentence = (text: string) => `${text.split('\n')[0]?.replace(/[.:]?$/, '')}. Fix the line, then try again.`
