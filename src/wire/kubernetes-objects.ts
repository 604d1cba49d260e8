/**
 * Lists of the Kubernetes API, and the events of a watch on them, one JSON document a line. What an object means is read
 * by whoever asked for it; here are its name and its version, which are the same of all.
 */
export interface KubeItem {
  readonly name: string
  readonly version: string | undefined
}

export interface KubeList<T extends KubeItem> {
  readonly version: string | undefined
  readonly items: readonly T[]
}

export type KubeEvent<T extends KubeItem> =
  | { readonly kind: 'put'; readonly item: T }
  | { readonly kind: 'deleted'; readonly item: T }
  | { readonly kind: 'bookmark'; readonly version: string | undefined }
  /** The watch has missed events: list again. */
  | { readonly kind: 'lost' }

/** Reads one object; what it does not understand it takes for absent. */
export type KubeReader<T extends KubeItem> = (object: Record<string, unknown>, item: KubeItem) => T

export function readKubeList<T extends KubeItem>(json: unknown, read: KubeReader<T>): KubeList<T> {
  const list = objectOf(json)
  return { version: versionOf(list), items: objectsOf(list['items']).map((object) => readItem(object, read)) }
}

export function readKubeEvent<T extends KubeItem>(json: unknown, read: KubeReader<T>): KubeEvent<T> {
  const { type, object } = objectOf(json)
  const item = objectOf(object)
  if (type === 'BOOKMARK') return { kind: 'bookmark', version: versionOf(item) }
  if (type === 'ADDED' || type === 'MODIFIED') return { kind: 'put', item: readItem(item, read) }
  if (type === 'DELETED') return { kind: 'deleted', item: readItem(item, read) }
  return { kind: 'lost' }
}

const readItem = <T extends KubeItem>(object: Record<string, unknown>, read: KubeReader<T>): T =>
  read(object, { name: String(objectOf(object['metadata'])['name']), version: versionOf(object) })

function versionOf(object: Record<string, unknown>): string | undefined {
  const version = objectOf(object['metadata'])['resourceVersion']
  return typeof version === 'string' ? version : undefined
}

/** The value if it is an object, else an empty one. */
export const objectOf = (value: unknown): Record<string, unknown> => (isPlain(value) ? value : {})

/** The objects of a list, if it is one. */
export const objectsOf = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isPlain) : []

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
