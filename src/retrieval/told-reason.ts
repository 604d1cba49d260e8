/**
 * What a client may read of an error. Our own sentences name no file, address or user; errors of the system, of drivers
 * and of libraries do, and are left to the operator's log. Ours are plain errors without a code, or the named ones.
 */
const OUR_NAMES = ['DatabaseUnavailable', 'QueryCancelled', 'LaneFull', 'CorpusError', 'PartUnavailable']

export function toldReason(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (OUR_NAMES.includes(error.name)) return error.message
  const isPlain = error.name === 'Error' && (error as { code?: unknown }).code === undefined
  return isPlain ? error.message : undefined
}
