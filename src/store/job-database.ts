import { LaneFull } from '../domain/corpus.ts'
import { JobsUnavailable } from '../domain/job.ts'
import { type Database, DatabaseUnavailable } from './database.ts'

/** The database as jobs see it: when it cannot be asked, they say so in their own words. */
export function jobDatabase(database: Database): Database {
  const told = (error: unknown): never => {
    if (error instanceof LaneFull) throw new JobsUnavailable(error.message, error.retryAfterUs)
    if (error instanceof DatabaseUnavailable) throw new JobsUnavailable(error.message)
    throw error
  }
  return {
    query: (sql, parameters, options) => database.query(sql, parameters, options).catch(told),
    run: (script, options) => database.run(script, options).catch(told),
    close: () => database.close(),
  }
}
