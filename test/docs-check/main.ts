import { parseArgs } from 'node:util'
import { type Checked, checkGroup, readGroups } from './check-commands.ts'
import { makeDocsWorld } from './docs-world.ts'

/**
 * `npm run docs:check`: runs the commands of the documentation and compares the figures that the pages give to them.
 *
 *   npm run docs:check -- [--full] [--only TEXT] [--traces FOLDER] [--json]
 *
 * --full runs everything at its own length (hours), --only what contains TEXT; --traces has the public traces that
 * docs/results.md names, in whose place there are a few lines otherwise.
 */
const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    traces: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const say = (text: string): void => void (values.json || process.stdout.write(`${text}\n`))

const groups = readGroups().filter(({ text }) => text.includes(values.only))
const world = await makeDocsWorld(values.traces)
const checked: Checked[] = []
try {
  for (const group of groups) {
    const one = await checkGroup(group, world, values.full)
    checked.push(one)
    const figures = one.figures > 0 ? `, ${one.figures} figures` : ''
    say(
      `${one.outcome.padEnd(7)}${one.cpuSeconds.toFixed(1).padStart(6)} s  ${one.text.replaceAll(/\s*\\?\n\s*/g, ' ')}${figures}`,
    )
    if (one.outcome === 'failed' || one.outcome === 'marked')
      say(`        ${one.places.join(' ')}\n        ${one.because}`)
  }
} finally {
  await world.close()
}

const count = (...outcomes: readonly Checked['outcome'][]): number =>
  checked.filter(({ outcome }) => outcomes.includes(outcome)).length
const figures = checked.reduce((sum, one) => sum + one.figures, 0)
const cpuSeconds = checked.reduce((sum, one) => sum + one.cpuSeconds, world.cpuSeconds())
const places = checked.reduce((sum, one) => sum + one.places.length, 0)
if (values.json) process.stdout.write(`${JSON.stringify({ checked, cpuSeconds }, undefined, 1)}\n`)
say(
  `\n${checked.length} commands at ${places} places: ${count('passed', 'failed')} run, ${count('suite')} left to the test suite, ` +
    `${count('marked')} marked, ${count('absent')} without their program; ${figures} figures; ${Math.round(cpuSeconds)} CPU seconds`,
)
say(`${count('passed')} passed, ${count('failed')} failed`)
process.exitCode = count('failed') === 0 ? 0 : 1
