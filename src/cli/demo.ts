import type { Running } from '../base/running.ts'
import { type Command, numberFlag, textFlag } from './command.ts'
import { demoLine, demoScreen, demoSummary } from './demo-view.ts'
import { untilSignal } from './until-signal.ts'

/** Where lines stay, about this many are enough to follow the story. */
const LINES = 30

export const demo: Command = {
  name: 'demo',
  summary: 'five minutes to see it work: calm, a 20\u00d7 spike by one tenant, recovery',
  about:
    'Drives the platform at --url with the demo tenants (start it with "spillway serve"), or starts one for as long as\n' +
    'the demo lasts if none runs. Shows what each tenant gets, then says what was seen and where to look next.',
  flags: {
    url: { type: 'string', value: 'URL', meaning: 'the platform (default http://127.0.0.1:8080, or one of its own)' },
    seconds: { type: 'string', value: 'N', meaning: 'how long it takes (default 300; 40 are enough to see it)' },
  },
  examples: ['spillway demo', 'spillway demo --seconds 60'],
  async run(flags, io) {
    // Loaded when the command runs: help and version need none of the platform.
    const { DEMO_SECONDS, demo: runDemo } = await import('../load/demo.ts')
    const seconds = numberFlag(flags, 'seconds', { min: 10, max: 3_600 }) ?? DEMO_SECONDS
    const isTerminal = process.stdout.isTTY
    const { stop, forget } = untilSignal()
    let paintedLines = 0
    let saidAtS = Number.NEGATIVE_INFINITY
    let phases: Parameters<typeof demoScreen>[1] = []
    try {
      const end = await runDemo({
        url: textFlag(flags, 'url'),
        startOwn: startDemoPlatform,
        seconds,
        onStart: ({ url, isOwn, phases: planned }) => {
          phases = planned
          const where = isOwn
            ? `No platform runs: started one at ${url} for the demo.`
            : `Driving the platform at ${url}.`
          io.out(`\n${where} ${seconds} s; Ctrl-C ends it.\n`)
        },
        onTick: (view) => {
          if (isTerminal) {
            const screen = demoScreen(view, phases)
            const up = paintedLines === 0 ? '' : `\u001b[${paintedLines}A\u001b[0J`
            process.stdout.write(`${up}${screen}\n`)
            paintedLines = screen.split('\n').length
          } else if (view.atS - saidAtS >= Math.max(1, seconds / LINES)) {
            saidAtS = view.atS
            io.out(demoLine(view))
          }
        },
        stop,
      })
      io.out(`\n${demoSummary(end)}\n`)
      return 0
    } finally {
      forget()
    }
  },
}

/** A platform on its defaults and on any free port, which says nothing. */
async function startDemoPlatform(): Promise<Running> {
  const { buildConfig } = await import('../config/load.ts')
  const { serve } = await import('../main/serve.ts')
  const config = buildConfig(undefined, {}, { 'server.port': '0', 'logging.level': 'error' })
  return serve(config, { out: () => {}, err: () => {} })
}
