/**
 * Masks a reason for the log. Libraries quote their input in error messages
 * (`Unexpected token 'T', "Tell me ab"... is not valid JSON`), and the input may be a prompt or a key. So everything
 * between quotation marks and everything that looks like a credential is removed, and the rest is cut to one short line.
 *
 * This is a second safeguard: entries should contain no such text in the first place.
 */

/** Longest reason: a reason is a sentence; longer texts are probably a quoted body. */
const TEXT_LENGTH_MAX = 200

/** Characters scanned at most, so that a megabyte of error message does not cost a megabyte of matching. */
const SCANNED_LENGTH_MAX = 2_000

/** An apostrophe inside a word is not a quotation mark; an opening mark without an end hides all that follows. */
const QUOTED =
  /"[^"]*("|$)|“[^”]*(”|$)|`[^`]*(`|$)|(?<![\p{L}\p{N}])'(?:[^']|(?<=[\p{L}\p{N}])'(?=[\p{L}\p{N}]))*('|$)/gu

/** `Bearer …`, `sk-…` and similar keys, and `api_key=…` in any spelling. */
const CREDENTIAL =
  /\b(?:bearer|basic)\s+[^\s,;]+|\b(?:sk|pk|rk|xoxb|ghp|gho|hf|spw)[-_][\w-]{4,}|\b(?:api[-_ ]?key|authorization|token|password|secret)\b\s*[:=]\s*[^\s,;]+/gi

export function maskFreeText(text: string): string {
  const masked = text.slice(0, SCANNED_LENGTH_MAX).replace(QUOTED, '"…"').replace(CREDENTIAL, '[masked]')
  // Control characters could forge a second line, or repaint a terminal.
  const oneLine = masked.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return oneLine.length > TEXT_LENGTH_MAX ? `${oneLine.slice(0, TEXT_LENGTH_MAX - 1)}…` : oneLine
}
