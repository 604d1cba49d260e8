/**
 * Which clients can do what with the gateway: the table in docs/operations/clients.md.
 * node bench/experiments/clients.ts [--write]
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TRIALS, type Trial } from '../../test/support/client-trials.ts'
import { startClientWorld } from '../../test/support/client-world.ts'
import { missing } from '../../test/support/installed.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PAGE = join(ROOT, 'docs', 'operations', 'clients.md')
const BEGIN = '<!-- made by bench/experiments/clients.ts -->'
const END = '<!-- end -->'

const PACKAGES: Readonly<Record<string, string>> = {
  openai: 'openai',
  AzureOpenAI: 'openai',
  '@anthropic-ai/sdk': '@anthropic-ai/sdk',
  'ai (default provider)': '@ai-sdk/openai',
  'ai (chat)': '@ai-sdk/openai',
}

function headOf(client: string): string {
  const name = PACKAGES[client]
  if (name === undefined) return client
  const text = readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')
  return `${client} ${(JSON.parse(text) as { version: string }).version}`
}

async function outcomeOf({ run, program }: Trial, world: Awaited<ReturnType<typeof startClientWorld>>) {
  if (program !== undefined && missing(program) !== undefined) return 'not installed'
  try {
    await run(world.platform)
    return 'works'
  } catch (error) {
    process.exitCode = 1
    process.stderr.write(`${String(error)}\n`)
    return '**fails**'
  }
}

const world = await startClientWorld()
const outcomes = new Map<Trial, string>()
for (const trial of TRIALS) outcomes.set(trial, await outcomeOf(trial, world))
await world.close()

const clients = [...new Set(TRIALS.map(({ client }) => client))]
const features = [...new Set(TRIALS.map(({ feature }) => feature))]
const cell = (feature: string, client: string): string => {
  const trial = TRIALS.find((one) => one.feature === feature && one.client === client)
  return trial === undefined ? '' : (outcomes.get(trial) ?? '')
}
const rowOf = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const table = [
  rowOf(['', ...clients.map(headOf)]),
  rowOf(['', ...clients].map(() => '---')),
  ...features.map((feature) => rowOf([feature, ...clients.map((client) => cell(feature, client))])),
].join('\n')
process.stdout.write(`${table}\n`)

if (process.argv.includes('--write')) {
  const page = readFileSync(PAGE, 'utf8')
  const [before, after] = [page.slice(0, page.indexOf(BEGIN) + BEGIN.length), page.slice(page.indexOf(END))]
  writeFileSync(PAGE, `${before}\n${table}\n${after}`)
}
