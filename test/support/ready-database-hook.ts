import { registerHooks } from 'node:module'

/** Loaded by `--import` into the processes of tests and their threads: see `ready-database.ts`. */
const EMPTY = '@electric-sql/pglite-prepopulatedfs'
const READY = new URL('./ready-database.ts', import.meta.url).href

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === EMPTY && context.parentURL !== READY ? READY : specifier, context),
})
