import { stripVTControlCharacters, styleText } from 'node:util'
import type { ConsoleParty, ConsoleView } from '../console/console-view.ts'
import { columnsOf } from './columns.ts'
import type { Command } from './command.ts'
import { ADMIN_FLAGS, serverAccessOf } from './http-admin-client.ts'
import { untilSignal } from './until-signal.ts'

const EVENTS_SHOWN = 8

export const top: Command = {
  name: 'top',
  summary: 'what a running server is doing: tenants, pools, replicas, refusals as they happen',
  about:
    'The figures of the console in a terminal, once a second until Ctrl-C. An admin key sees everything, the key of a\n' +
    'tenant itself. Where the output is no terminal, or with --json, it is told once.',
  flags: ADMIN_FLAGS,
  examples: ['spillway top', 'spillway top --url http://10.0.0.5:8080', 'spillway top --json'],
  async run(flags, io) {
    const { fetchView, views } = await import('./http-top.ts')
    const access = serverAccessOf(flags)
    if (flags['json'] === true || !process.stdout.isTTY) {
      const view = await fetchView(access)
      io.out(flags['json'] === true ? JSON.stringify(view) : topScreen(view))
      return 0
    }
    const signal = untilSignal()
    for await (const view of views(access, signal.stop)) {
      const rows = (process.stdout.rows ?? 40) - 1
      io.out(`\u001b[H\u001b[2J${topScreen(view).split('\n').slice(0, rows).join('\n')}`)
    }
    signal.forget()
    return 0
  },
}

type Tone = 'green' | 'yellow' | 'red' | 'dim' | 'bold'
const paint = (tone: Tone, text: string): string => styleText(tone, text, { stream: process.stdout })

/** Everything as text; names come from others, so nothing in them may move the cursor. */
export function topScreen(view: ConsoleView): string {
  const of = (counts: readonly number[], name: string): number => counts[view.columns.indexOf(name)] ?? 0
  const { total } = view
  const head = [
    `promises kept ${share(of(total, 'kept'), of(total, 'broken'))}`,
    `asked ${(of(total, 'arrived') / 60).toFixed(1)}/s`,
    `refused ${of(total, 'refused')}`,
    `failed ${of(total, 'failed')}`,
    `first token p95 ${view.firstTokenP95Ms === undefined ? '–' : `${Math.round(view.firstTokenP95Ms)} ms`}`,
  ]
  const party = ({ name, counts }: ConsoleParty): string[] => [
    cleanLine(name),
    share(of(counts, 'kept'), of(counts, 'broken')),
    (of(counts, 'arrived') / 60).toFixed(1),
    String(of(counts, 'refused')),
    String(of(counts, 'failed')),
    String(of(counts, 'degraded')),
    String(of(counts, 'tokens')),
  ]
  const heads = ['KEPT', 'ASKED/S', 'REFUSED', 'FAILED', 'DEGRADED', 'TOKENS']
  const pools = view.pools.map((pool) => [
    cleanLine(pool.id),
    String(pool.queued),
    String(pool.held),
    String(pool.ready),
    pool.pressure.toFixed(2),
    pool.isShedding ? 'refuses offline work' : '',
  ])
  const unwell = view.replicas.filter(({ isReady, health }) => !isReady || health !== 'steady')
  const replicas = unwell.map(({ id, health, isReady, because }) => [
    cleanLine(id),
    isReady ? health : 'not ready',
    cleanLine(because),
  ])
  const events = view.events.slice(-EVENTS_SHOWN).toReversed()
  return [
    `${paint('bold', 'Last minute')}  ${head.join('   ')}`,
    '',
    columnsOf([['TENANT', ...heads], ...view.tenants.map(party)]),
    ...(view.others > 0 ? [paint('dim', `and ${view.others} more tenants`)] : []),
    ...(pools.length > 0 ? ['', columnsOf([['POOL', 'WAITING', 'RUNNING', 'READY', 'PRESSURE', ''], ...pools])] : []),
    ...(replicas.length > 0 ? ['', columnsOf([['REPLICA', 'HEALTH', 'WHY'], ...replicas])] : []),
    ...(events.length > 0
      ? [
          '',
          ...events.map(
            ({ at, kind, text }) => `${new Date(at).toISOString().slice(11, 19)}  ${kind}  ${cleanLine(text)}`,
          ),
        ]
      : []),
    '',
  ].join('\n')
}

function share(kept: number, broken: number): string {
  if (kept + broken === 0) return '–'
  return `${((100 * kept) / (kept + broken)).toFixed(1)} %`
}

/** Without control characters: names and reasons come from others. */
export const cleanLine = (text: string): string => stripVTControlCharacters(text).replaceAll(/\p{Cc}/gu, ' ')
