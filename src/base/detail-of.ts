/**
 * An error in the operator's words: its message, and the detail that it keeps from clients (addresses, file names), if
 * it has any.
 */
export function detailOf(error: unknown): string {
  const { detail } = error as { readonly detail?: unknown }
  const message = error instanceof Error ? error.message : String(error)
  return typeof detail === 'string' ? `${message} ${detail}` : message
}
