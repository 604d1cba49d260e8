import { PLATFORM_TENANT_ID } from '../../domain/tenant.ts'

/**
 * Which ids and reasons may an administrative call bring?
 *
 * An id that is made at run time has 1 to 64 of the characters a–z, 0–9, `-` and `.`; it begins and ends with a letter
 * or digit, and no two marks stand side by side. The reasons, character by character:
 *
 * - Only ASCII: no letter of another alphabet looks like one of these, so two ids that look the same are the same.
 * - Only lower case: no two ids differ in case alone, and none has `I` beside `l`, or `O` beside `0`.
 * - No line breaks and no other control characters: an id cannot end a log line or a header and begin another one.
 * - No `_`, which separates the parts of a secret (`spw_<id>_<secret>`); no `/`, `:` and `@`, which separate the parts of
 *   a path, of `region:model` and of `tenant@region`; no `..`, which some path rules resolve.
 *
 * The configuration file allows more (upper case, `_`, `:`, `/`). Its ids stay valid; only new ids are held to this.
 * A reason is free text for people, of any alphabet, on one line.
 */

const PLAIN_ID = /^[a-z0-9]+([.-][a-z0-9]+)*$/
const ID_LENGTH_MAX = 64

/** What is wrong with the id; undefined when nothing is. */
export function idProblem(id: string): string | undefined {
  if (id === PLATFORM_TENANT_ID) return `is the platform's own name. Take another one`
  if (id.length <= ID_LENGTH_MAX && PLAIN_ID.test(id)) return undefined
  return `is no id: take 1 to ${ID_LENGTH_MAX} of a–z, 0–9, "-" and ".", with a letter or digit at both ends and around every mark`
}

/** Longest reason: a paragraph. The history keeps it for ever. */
const REASON_LENGTH_MAX = 500

/**
 * Control characters, line and paragraph separators, and the marks that turn the direction of writing: what can make one
 * line of a log look like two, or like another one.
 */
const NOT_PLAIN = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|\p{Cs}/u

export function reasonProblem(because: string): string | undefined {
  if (because.trim() === '') return 'is empty: say why, for those who read the history'
  if (because.length > REASON_LENGTH_MAX) return `is longer than ${REASON_LENGTH_MAX} characters`
  return NOT_PLAIN.test(because) ? 'has line breaks or other control characters: write one plain line' : undefined
}

/** A text of a caller within a message: short, in quotation marks, ASCII only. */
export function quoted(text: string): string {
  const short = text.length > ID_LENGTH_MAX ? `${text.slice(0, ID_LENGTH_MAX)}…` : text
  return JSON.stringify(short).replace(
    /[^ -~…]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
