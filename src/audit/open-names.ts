import { openSeal, sealIdOf } from './seals.ts'

/** An event with its names opened, as far as their keys are kept. */
export interface NamedLine {
  readonly at: number
  readonly kind: string
  readonly tenant?: string
  readonly user?: string
  readonly key?: string
  readonly actor: { readonly kind: string; readonly name: string }
}

export function openNames(text: string, keys: ReadonlyMap<string, Buffer>): NamedLine {
  const line = JSON.parse(text) as NamedLine
  const open = (sealed: string): string => {
    const key = keys.get(sealIdOf(sealed))
    return (key && openSeal(sealed, key)) ?? sealed
  }
  const { actor, user, key } = line
  return {
    ...line,
    actor: actor.kind === 'key' ? { ...actor, name: open(actor.name) } : actor,
    ...(user !== undefined && { user: open(user) }),
    ...(key !== undefined && { key: open(key) }),
  }
}
