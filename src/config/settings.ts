import type { SchemaNode } from '../base/schema.ts'
import { asNode, isObject, type Path } from './explain.ts'
import { ConfigSchema } from './schema.ts'

/** Every setting of the schema as one flat list: for the environment, the settings page and `.env.example`. */
export interface Setting {
  readonly path: readonly string[]
  /** Absent for lists and inside them: they can be written in the file only. */
  readonly env: string | undefined
  readonly node: SchemaNode
  readonly isRequired: boolean
  /** The optional block that the setting belongs to; "required" then means: if the block is there. */
  readonly within: string | undefined
}

export const settings: readonly Setting[] = collect(asNode(ConfigSchema), [], { canBeInEnvironment: true })

interface Place {
  readonly canBeInEnvironment: boolean
  readonly within?: string
}

function collect(node: SchemaNode, path: readonly string[], place: Place): Setting[] {
  const found: Setting[] = []
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    const at = [...path, key]
    const isRequired = child.default === undefined && (node.required ?? []).includes(key)
    const isOptional = child.default === undefined && !(node.required ?? []).includes(key)
    const inside = isOptional ? { ...place, within: key } : place
    if (child.properties !== undefined) found.push(...collect(child, at, inside))
    else if (child.anyOf?.every((branch) => branch.properties !== undefined)) {
      for (const branch of child.anyOf) found.push(...collect(branch, at, { ...inside, canBeInEnvironment: false }))
    } else if (child.items?.properties !== undefined)
      found.push(...collect(child.items, [...path, `${key}[]`], { ...inside, canBeInEnvironment: false }))
    else {
      const env = place.canBeInEnvironment && child.type !== 'array' ? envNameOf(at, child) : undefined
      found.push({ path: at, env, node: child, isRequired, within: place.within })
    }
  }
  return found
}

function envNameOf(path: readonly string[], node: SchemaNode): string {
  const words = path.map((part) => part.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase())
  return node.env ?? `SPILLWAY_${words.join('_')}`
}

/** Puts a value into a tree of plain objects, making missing objects; a value in the way is left for the check. */
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
