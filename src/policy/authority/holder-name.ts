import type { AuthorityHolder } from '../../domain/tenancy.ts'

/**
 * What is a holder of authority called in a message?
 *
 * Example: `the org acme`, `the role auditor`, `the platform`.
 */
export function holderName(holder: AuthorityHolder): string {
  if ('id' in holder) return `the ${holder.kind} ${holder.id}`
  return holder.kind === 'platform' ? 'the platform' : 'the configuration file'
}
