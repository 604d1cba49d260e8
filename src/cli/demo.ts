import type { Running } from '../base/running.ts'
import { type Command, numberFlag, textFlag } from './command.ts'
import { demoLine, demoScreen, demoSummary } from './demo-view.ts'
import { serverUrlOf } from './http-server-client.ts'
import { untilSignal } from './until-signal.ts'

/** Lines printed where the view cannot be repainted: enough to follow the demo. */
const LINES = 30

export const demoCommand: Command = {
  name: 'demo',
  summary: 'see the platform work in five minutes: calm, a 20\u00d7 spike by one tenant, recovery',
  about:
    'Sends the requests of the demo tenants to the platform at --url ("spillway serve" starts one). If none runs, the\n' +
    'demo starts its own and stops it at the end. Shows what each tenant gets, then a summary and where to look next.',
  flags: {
    url: { type: 'string', value: 'URL', meaning: 'the platform (default http://127.0.0.1:PORT, else its own)' },
    seconds: { type: 'string', value: 'N', meaning: 'length of the demo (default 300; 40 are enough)' },
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
        likelyUrl: serverUrlOf({}),
        startOwn: startDemoPlatform,
        seconds,
        onStart: ({ url, isOwn, phases: planned }) => {
          phases = planned
          const where = isOwn
            ? `No platform was running: started one at ${url} for the demo.`
            : `Sending requests to the platform at ${url}.`
          io.out(`\n${where} The demo takes ${seconds} s; Ctrl-C ends it.\n`)
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

/** A platform with the default settings on any free port, which prints nothing. */
async function startDemoPlatform(): Promise<Running> {
  const { buildConfig } = await import('../config/load.ts')
  const { serve } = await import('../main/serve.ts')
  const config = buildConfig(undefined, {}, { 'server.port': '0', 'logging.level': 'error' })
  return serve(config, { out: () => {}, err: () => {} })
}
