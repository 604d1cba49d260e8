import type { ConsoleView } from './console-view.ts'

/**
 * A second's message: what is as it was is left out, and lists of parties tell only those that changed, by place.
 * All viewers get the same message, so a viewer who comes makes the next one whole.
 *
 *   replicas: [a, b, c]  →  `replicasAt`: [[1, b']]     when as many are there and only b is another
 *   pools, tenants, models: the same
 */
const BY_PLACE = ['pools', 'replicas', 'tenants', 'models'] as const
const ALWAYS: ReadonlySet<string> = new Set(['at', 'total', 'events'])

type Spelled = ReadonlyMap<string, string | readonly string[]>

export class ConsoleDelta {
  #told: Spelled = new Map()

  /** The next message is whole. */
  restart(): void {
    this.#told = new Map()
  }

  spell(view: ConsoleView): string {
    const spelled = new Map<string, string | readonly string[]>()
    const parts: string[] = []
    for (const [name, value] of Object.entries(view)) {
      const before = this.#told.get(name)
      const isByPlace = (BY_PLACE as readonly string[]).includes(name)
      const text = isByPlace ? (value as readonly unknown[]).map(textOf) : textOf(value)
      spelled.set(name, text)
      const part = typeof text === 'string' ? wholePart(name, text, before) : listPart(name, text, before)
      if (part !== undefined) parts.push(part)
    }
    this.#told = spelled
    return `{${parts.join(',')}}`
  }
}

const textOf = (value: unknown): string => JSON.stringify(value) ?? 'null'

function wholePart(name: string, text: string, before: string | readonly string[] | undefined): string | undefined {
  return text === before && !ALWAYS.has(name) ? undefined : `"${name}":${text}`
}

/** More than half of the places changed, or there are more or fewer: the whole list. */
function listPart(name: string, texts: readonly string[], before: unknown): string | undefined {
  if (!Array.isArray(before) || before.length !== texts.length) return `"${name}":[${texts.join(',')}]`
  const changed = texts.flatMap((text, i) => (text === before[i] ? [] : [`[${i},${text}]`]))
  if (changed.length === 0) return undefined
  if (changed.length * 2 > texts.length) return `"${name}":[${texts.join(',')}]`
  return `"${name}At":[${changed.join(',')}]`
}
