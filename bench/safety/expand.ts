/**
 * Texts of our own, written as templates: `(a|b|c)` is one of several, `[x]` and `[a|b]` may be left
 * out, `<name>` is one word of the
 * list `<name> = a | b | c`. A line is a template, and all texts made of it are one group: they stay together in splits.
 * `@ kind` opens a section. Lines with `#` are comments.
 */
export interface OwnText {
  readonly kind: string
  readonly group: string
  readonly text: string
}

/** mulberry32: small, seeded, the same on every machine. */
export function makeDraw(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

export function expandTemplates(file: string, source: string, textsPerLine: number): OwnText[] {
  const lists = new Map<string, readonly string[]>()
  const made: OwnText[] = []
  const draw = makeDraw(source.length * 7_919)
  let kind = 'any'
  for (const [number, raw] of source.split('\n').entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    if (line.startsWith('@ ')) {
      kind = line.slice(2)
      continue
    }
    const list = /^<([a-z-]+)> = (.*)$/.exec(line)
    if (list !== null) {
      lists.set(list[1] as string, (list[2] as string).split(' | '))
      continue
    }
    const texts = new Set<string>()
    for (let tries = 0; tries < textsPerLine * 3 && texts.size < textsPerLine; tries++) {
      texts.add(tidy(expand(line, lists, draw)))
    }
    for (const text of texts) made.push({ kind, group: `${file}:${number + 1}`, text })
  }
  return made
}

/** Brackets that are meant are written `⟦ ⟧` and `⦅ ⦆`, line ends `\\n`. */
function tidy(text: string): string {
  return text
    .replaceAll('⟦', '[')
    .replaceAll('⟧', ']')
    .replaceAll('⦅', '(')
    .replaceAll('⦆', ')')
    .replaceAll('\\n', '\n')
    .replace(/ {2,}/g, ' ')
    .replace(/ ([.,!?:;])/g, '$1')
    .trim()
}

/** Innermost brackets first, until none is left. */
function expand(line: string, lists: ReadonlyMap<string, readonly string[]>, draw: (below: number) => number): string {
  let text = line
  for (let round = 0; round < 200; round++) {
    const found = /\(([^()[\]<>]*\|[^()[\]<>]*)\)|\[([^()[\]<>]*)\]|<([a-z-]+)>/.exec(text)
    if (found === null) return text
    const [whole, choices, optional, name] = found
    let chosen = ''
    if (choices !== undefined) {
      const parts = choices.split('|')
      chosen = parts[draw(parts.length)] as string
    } else if (optional !== undefined) {
      const parts = optional.split('|')
      chosen = draw(2) === 0 ? '' : (parts[draw(parts.length)] as string)
    } else {
      const words = lists.get(name as string)
      if (words === undefined) throw new Error(`no list <${name}> before the line: ${line}`)
      chosen = words[draw(words.length)] as string
    }
    text = text.slice(0, found.index) + chosen + text.slice(found.index + whole.length)
  }
  throw new Error(`too many brackets: ${line}`)
}
