/**
 * Changes single members of a JSON text and leaves every other character as it was written: numbers keep their digits,
 * members that nobody here knows keep their place. A text that is parsed and written again would keep neither `1.0` nor
 * integers beyond 2⁵³.
 *
 * The text must be valid JSON: whoever calls has parsed it. Only the outermost object is looked into, so the cost is one
 * pass over the text.
 *
 * Example: `{"id":"a","n":1.0}` with `id` → `"b"` and `model` → `"m"` is `{"id":"b","n":1.0,"model":"m"}`.
 */

/** A member of the outermost object: `json.slice(start, end)` is `"name":value`. */
export interface JsonMember {
  readonly name: string
  readonly start: number
  readonly valueStart: number
  readonly end: number
}

/** The new text of a member; null takes the member away. */
export type JsonChanges = Readonly<Record<string, string | null | undefined>>

const QUOTE = 34
const BACKSLASH = 92
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const OPEN_BRACKET = 91
const CLOSE_BRACKET = 93
const COMMA = 44
const SPACE = 32

/** The members of an object in the order of the text; undefined for any other value. */
export function membersOf(json: string): JsonMember[] | undefined {
  const brace = skipSpace(json, 0)
  return json.charCodeAt(brace) === OPEN_BRACE ? readMembers(json, skipSpace(json, brace + 1)) : undefined
}

/** The members after the one whose value begins at `valueStart`, and where that value ends. */
export function membersAfter(json: string, valueStart: number): { valueEnd: number; members: readonly JsonMember[] } {
  const valueEnd = endOfValue(json, valueStart)
  const comma = skipSpace(json, valueEnd)
  if (json.charCodeAt(comma) !== COMMA) return { valueEnd, members: [] }
  return { valueEnd, members: readMembers(json, skipSpace(json, comma + 1)) }
}

function readMembers(json: string, from: number): JsonMember[] {
  const members: JsonMember[] = []
  let at = from
  while (json.charCodeAt(at) === QUOTE) {
    const start = at
    const nameEnd = endOfString(json, at)
    // After the name and its colon.
    const valueStart = skipSpace(json, skipSpace(json, nameEnd) + 1)
    const end = endOfValue(json, valueStart)
    members.push({ name: nameIn(json, start, nameEnd), start, valueStart, end })
    at = skipSpace(json, end)
    if (json.charCodeAt(at) !== COMMA) break
    at = skipSpace(json, at + 1)
  }
  return members
}

/** The texts of a list's elements; undefined for any other value. */
export function elementsOf(json: string): string[] | undefined {
  let at = skipSpace(json, 0)
  if (json.charCodeAt(at) !== OPEN_BRACKET) return undefined
  const elements: string[] = []
  at = skipSpace(json, at + 1)
  while (at < json.length && json.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = endOfValue(json, at)
    elements.push(json.slice(at, end))
    at = skipSpace(json, end)
    if (json.charCodeAt(at) !== COMMA) break
    at = skipSpace(json, at + 1)
  }
  return elements
}

/** The text of one member's value; undefined where there is none. Of two with one name the last counts, as in parsing. */
export function memberText(json: string, name: string, members = membersOf(json)): string | undefined {
  const member = members?.findLast((one) => one.name === name)
  return member === undefined ? undefined : json.slice(member.valueStart, member.end)
}

/** The object with these members changed, added at its end, or taken away; any other value as it is. */
export function spliceJson(json: string, changes: JsonChanges, members = membersOf(json)): string {
  if (members === undefined) return json
  let out = ''
  let kept = 0
  // Where the text begins that has not been copied; a member that goes takes the comma before or after it along.
  let from = 0
  const found: string[] = []
  const names = Object.keys(changes)
  for (let i = 0; i < members.length; i++) {
    const { name, start, valueStart, end } = members[i] as JsonMember
    const change = changeOf(changes, names, name)
    if (change === undefined) kept++
    else if (change === null || found.includes(name)) {
      out += json.slice(from, kept === 0 ? start : endOfMember(members, i - 1))
      from = kept === 0 ? (members[i + 1]?.start ?? end) : end
    } else {
      found.push(name)
      kept++
      out += json.slice(from, valueStart) + change
      from = end
    }
  }
  const last = members.at(-1)
  const brace = last === undefined ? json.indexOf('{') + 1 : last.end
  out += json.slice(from, brace)
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    const change = changes[name]
    if (change === undefined || change === null || found.includes(name)) continue
    out += `${kept++ === 0 ? '' : ','}${JSON.stringify(name)}:${change}`
  }
  return out + json.slice(Math.max(from, brace))
}

/** There are few changes: comparing is quicker than a look-up by a name that has only just been cut out of the text. */
function changeOf(changes: JsonChanges, names: readonly string[], name: string): string | null | undefined {
  for (let i = 0; i < names.length; i++) if (names[i] === name) return changes[names[i] as string]
  return undefined
}

const endOfMember = (members: readonly JsonMember[], index: number): number => members[index]?.end ?? 0

function nameIn(json: string, start: number, end: number): string {
  const name = json.slice(start + 1, end - 1)
  return name.includes('\\') ? (JSON.parse(`"${name}"`) as string) : name
}

function skipSpace(json: string, from: number): number {
  let at = from
  while (at < json.length && json.charCodeAt(at) <= SPACE) at++
  return at
}

/** The index after the string that begins at `from`. */
function endOfString(json: string, from: number): number {
  let end = json.indexOf('"', from + 1)
  while (end >= 0 && isEscaped(json, end)) end = json.indexOf('"', end + 1)
  return end < 0 ? json.length : end + 1
}

/** Whether an odd number of backslashes stands before this quote. */
function isEscaped(json: string, quote: number): boolean {
  let at = quote - 1
  while (json.charCodeAt(at) === BACKSLASH) at--
  return (quote - at) % 2 === 0
}

/** The index after the value that begins at `from`. */
function endOfValue(json: string, from: number): number {
  const first = json.charCodeAt(from)
  if (first === QUOTE) return endOfString(json, from)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfNested(json, from)
  let at = from
  while (at < json.length && !isEnd(json.charCodeAt(at))) at++
  return at
}

const isEnd = (code: number): boolean =>
  code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= SPACE

function endOfNested(json: string, from: number): number {
  let depth = 0
  for (let at = from; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) at = endOfString(json, at) - 1
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at + 1
  }
  return json.length
}
