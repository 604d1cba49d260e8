import type { Database, Parameter } from './database.ts'

/**
 * PostgreSQL's texts hold no NUL, neither plain nor written as `\u0000` in JSON. Nobody means one: it is left out of
 * every parameter, so that a stray byte in a name is a name that does not exist and not an error of the database.
 */
export function withoutNuls(database: Database): Database {
  return {
    query: (sql, parameters, options) => database.query(sql, parameters.map(clean), options),
    run: (script, options) => database.run(script, options),
    close: () => database.close(),
  }
}

function clean(parameter: Parameter): Parameter {
  if (typeof parameter !== 'string') return parameter
  const plain = parameter.includes('\0') ? parameter.replaceAll('\0', '') : parameter
  // An even number of backslashes before it are backslashes of their own.
  return plain.includes('\\u0000') ? plain.replace(/(?<!\\)((?:\\\\)*)\\u0000/g, '$1') : plain
}
