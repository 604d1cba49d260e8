import fc from 'fast-check'

/**
 * What do properties draw? The same in every run, in every file that has not chosen a seed itself: a change is refused
 * for what it breaks, never for a draw that nobody has seen before, and whoever runs the test again sees the same.
 *
 * `SPILLWAY_PROPERTY_SEED=new` draws others and says from which seed; the number in place of `new` draws them again
 * (`npm run properties`). What such a run finds stays as a test of its own.
 */
const asked = process.env['SPILLWAY_PROPERTY_SEED']
const FIRST_SEED = 1

function seedOf(word: string): number {
  if (word !== 'new') return Number(word)
  const seed = Date.now() % 2 ** 31
  process.stderr.write(`properties are drawn from SPILLWAY_PROPERTY_SEED=${seed}\n`)
  return seed
}

fc.configureGlobal({ seed: asked === undefined ? FIRST_SEED : seedOf(asked) })
