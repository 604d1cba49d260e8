import type { Problem } from './explain.ts'
import type { Settings } from './schema.ts'

/** Sinks that lack what their kind needs. */
export function checkAudit({ audit }: Settings): Problem[] {
  return audit.sinks.flatMap((sink, i): Problem[] => {
    const path = ['audit', 'sinks', i]
    const { kind, url, apiKey, apiKeyEnv, accessKeyId } = sink
    if (kind === 'file' && sink.path === undefined) return [{ path, text: 'is a file without a path. Set path' }]
    if ((kind === 'http' || kind === 's3') && url === undefined) return [{ path, text: 'has no address. Set url' }]
    if (kind === 's3' && (accessKeyId === undefined) !== ((apiKey ?? apiKeyEnv) === undefined)) {
      return [{ path, text: 'has half a credential. Set both accessKeyId and apiKeyEnv, or neither' }]
    }
    return apiKey !== undefined && apiKeyEnv !== undefined
      ? [{ path, text: 'has apiKey and apiKeyEnv. Keep one of them' }]
      : []
  })
}
