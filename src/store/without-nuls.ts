import type { Database, Parameter } from './database.ts'

/**
 * PostgreSQL's texts cannot contain NUL, neither plain nor as `\u0000` in JSON. NUL is removed from every parameter, so
 * that a stray byte in a name gives an unknown name and not an error of the database.
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
  // An even number of backslashes before it are escaped backslashes.
  return plain.includes('\\u0000') ? plain.replace(/(?<!\\)((?:\\\\)*)\\u0000/g, '$1') : plain
}
