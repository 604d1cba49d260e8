/**
 * The strings of a JSON text, where they stand: every value and every property name, also those that a second member of
 * the same name hides from a parser. What is replaced there leaves every other character as it was written.
 *
 * The text need not be valid: what is no JSON gives some leaves, and its error comes from whoever parses it. The cost is
 * one pass over the text.
 */
export interface JsonLeaf {
  /** `name`: a property's name. `number`: a whole number with as many digits as a card or an account has. */
  readonly kind: 'text' | 'name' | 'number'
  /** `json.slice(start, end)` is the literal, with its quotes. */
  readonly start: number
  readonly end: number
  /** The member that the value belongs to, through any lists; the object's own member, for a name. */
  readonly member: string
  /** The member that the object around it belongs to. */
  readonly above: string
  /** The member of the outermost object. */
  readonly top: string
}

export interface JsonLeaves {
  readonly leaves: readonly JsonLeaf[]
  /** Members that have a list of numbers. */
  readonly numberLists: ReadonlySet<string>
}

/** Digits that a whole number needs to be looked at: the shortest card has 13, and a time in milliseconds, too. */
const LONG_NUMBER = /^-?\d{13,19}(?:\.0{1,2})?$/

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const SPACE = 32

export function jsonLeaves(json: string): JsonLeaves {
  const leaves: JsonLeaf[] = []
  const numberLists = new Set<string>()
  /** The member at each depth; a list has that of the value that it is. */
  const members: string[] = ['']
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      const end = endOfString(json, at)
      const isName = json.charCodeAt(skipSpace(json, end)) === COLON
      leaves.push(leafAt(isName ? 'name' : 'text', at, end))
      if (isName) members[depth] = stringAt(json, at, end)
      at = end - 1
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      const member = members[depth] ?? ''
      members[++depth] = code === OPEN_BRACE ? '' : member
      if (code === OPEN_BRACKET && isDigit(json.charCodeAt(skipSpace(json, at + 1)))) numberLists.add(member)
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (depth > 0) depth--
    } else if (isDigit(code)) {
      const end = endOfNumber(json, at)
      if (end - at >= 13 && LONG_NUMBER.test(json.slice(at, end))) leaves.push(leafAt('number', at, end))
      at = end - 1
    }
  }
  return { leaves, numberLists }

  function leafAt(kind: JsonLeaf['kind'], start: number, end: number): JsonLeaf {
    const member = members[depth] ?? ''
    return { kind, start, end, member, above: members[depth - 1] ?? '', top: members[1] ?? '' }
  }
}

/** The string that a literal stands for; what is no literal stands for itself. */
export function stringAt(json: string, start: number, end: number): string {
  const plain = json.slice(start + 1, end - 1)
  if (!plain.includes('\\')) return plain
  try {
    return JSON.parse(json.slice(start, end)) as string
  } catch {
    return plain
  }
}

const isDigit = (code: number): boolean => (code >= 48 && code <= 57) || code === 45

function endOfNumber(json: string, from: number): number {
  let at = from + 1
  while (at < json.length && !isEnd(json.charCodeAt(at))) at++
  return at
}

const isEnd = (code: number): boolean =>
  code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code === COLON || code === QUOTE || code <= SPACE

function skipSpace(json: string, from: number): number {
  let at = from
  while (at < json.length && json.charCodeAt(at) <= SPACE) at++
  return at
}

/** The index after the string that begins at `from`. */
function endOfString(json: string, from: number): number {
  let end = json.indexOf('"', from + 1)
  while (end >= 0 && isEscaped(json, end, from)) end = json.indexOf('"', end + 1)
  return end < 0 ? json.length : end + 1
}

/** Whether an odd number of backslashes stands before this quote. */
function isEscaped(json: string, quote: number, from: number): boolean {
  let at = quote - 1
  while (at > from && json.charCodeAt(at) === BACKSLASH) at--
  return (quote - at) % 2 === 0
}
