import { asNode, isObject, type Path, type SchemaNode } from './explain.ts'
import { ConfigSchema } from './schema.ts'

/** Every setting of the schema as one flat list: for the environment, the settings page and `.env.example`. */
export interface Setting {
  readonly path: readonly string[]
  /** Absent inside lists: those are written in the file only. */
  readonly env: string | undefined
  readonly node: SchemaNode
  readonly isRequired: boolean
}

export const settings: readonly Setting[] = collect(asNode(ConfigSchema), [], true)

function collect(node: SchemaNode, path: readonly string[], canBeInEnvironment: boolean): Setting[] {
  const found: Setting[] = []
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    const at = [...path, key]
    const isRequired = child.default === undefined && (node.required ?? []).includes(key)
    if (child.properties !== undefined) found.push(...collect(child, at, canBeInEnvironment))
    else if (child.anyOf?.every((branch) => branch.properties !== undefined)) {
      for (const branch of child.anyOf) found.push(...collect(branch, at, false))
    } else if (child.items?.properties !== undefined) found.push(...collect(child.items, [...path, `${key}[]`], false))
    else found.push({ path: at, env: canBeInEnvironment ? envNameOf(at, child) : undefined, node: child, isRequired })
  }
  return found
}

function envNameOf(path: readonly string[], node: SchemaNode): string {
  const words = path.map((part) => part.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase())
  return node.env ?? `SPILLWAY_${words.join('_')}`
}

/** Puts a value into a tree of plain objects, making the objects on the way; what is in the way is left for the check. */
export function setIn(tree: Record<string, unknown>, path: Path, value: unknown): void {
  let at = tree
  for (const key of path.slice(0, -1)) {
    const next = at[key] ?? {}
    if (!isObject(next)) return
    at[key] = next
    at = next
  }
  at[path[path.length - 1] as string] = value
}
