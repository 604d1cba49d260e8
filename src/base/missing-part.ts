/**
 * The embedded database and the built-in embedder are optional parts of the package: `npm install --omit=optional` and
 * small images leave them out. Where one is needed and absent, Node's error names a package; this says what to do.
 */
const NOT_FOUND = /Cannot find (?:package|module) '((?:@[^'/]+\/)?[^'/]+)/

/** What to do about a part that is not installed; undefined if the error is another one. */
export function explainMissingPart(error: unknown, instead: string): string | undefined {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  const name = NOT_FOUND.exec(String(message))?.[1]
  if (name === undefined || (code !== undefined && code !== 'ERR_MODULE_NOT_FOUND')) return undefined
  return `The package ${name} is not there: this install left out the optional parts. Install Spillway again with them (npm install --include=optional), or ${instead}.`
}
