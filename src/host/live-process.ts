import { CallLine, type LineMessage } from '../base/call-line.ts'
import { LiveClock } from '../base/live-clock.ts'
import { loadConfig } from '../config/load.ts'
import { type Served, serve } from '../main/serve.ts'
import { LISTEN_FD, METRICS_FD, type SeatOrder } from './seat-order.ts'

/**
 * One process of a host: the whole gateway, at a seat that its supervisor gives it. It ends when the supervisor says so,
 * and also when the supervisor is gone: then nobody replaces it, and the socket should be free for the next start.
 */
const clock = new LiveClock()
const line = new CallLine({ clock, send: (message) => void process.send?.(message) })
let served: Served | undefined
let isEnding = false

process.on('message', (message) => line.take(message as LineMessage))

// A terminal signals every process of the group; what it means is the supervisor's to say.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
// Init systems signal every process of a group at once; of one alone, the supervisor makes a replacement first.
process.on('SIGTERM', () => line.say('told-to-stop', undefined))
process.on('disconnect', () => {
  line.close('the supervisor has ended')
  end((running) => running.close())
})

line.on('begin', async ({ number, configPath, flags, hasStore, hasSharing, hasMetricsSocket }: SeatOrder) => {
  const load = () => loadConfig({ path: configPath, flags })
  const io = {
    out: (text: string) => void process.stdout.write(`${text}\n`),
    err: (text: string) => void process.stderr.write(`[process ${number}] ${text}\n`),
  }
  const seat = {
    number,
    line,
    hasStore,
    hasSharing,
    listenFd: LISTEN_FD,
    metricsFd: hasMetricsSocket ? METRICS_FD : undefined,
  }
  served = await serve(load(), io, clock, load, seat)
})

line.on(
  'retire',
  () =>
    new Promise<void>((resolve) => {
      end((running) => running.retire(resolve))
    }),
)
line.on('stop', () => end((running) => running.close()))

/** Ends once, however often it is asked. */
function end(how: (running: Served) => Promise<void>): void {
  if (isEnding) return
  isEnding = true
  const ended = served === undefined ? Promise.resolve() : how(served)
  void ended.then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`spillway: could not stop in order: ${String(error)}\n`)
      process.exit(1)
    },
  )
}
