import { type ArchiveCode, fixedRetryUs, type ToldRefusal } from './error-table.ts'

/** The archive cannot be asked now. */
export const archiveAway = ({ message }: Error): ToldRefusal<ArchiveCode> => ({
  code: 'archive-unavailable',
  because: message,
  blame: 'platform',
  retryAfterUs: fixedRetryUs('archive-unavailable'),
})
