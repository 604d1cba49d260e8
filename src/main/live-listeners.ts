import { breathe } from '../assembly/live-backends.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { makeIds, makeRequestIds } from '../base/live-ids.ts'
import type { Io } from '../base/running.ts'
import { withinTime } from '../base/within-time.ts'
import type { Config } from '../config/schema.ts'
import type { Control } from '../control/control.ts'
import { ANTHROPIC_ERRORS } from '../gateway/anthropic-errors.ts'
import { closeServer, LAST_WORDS_US, listen } from '../gateway/http-listen.ts'
import { type HttpServer, type HttpServerOptions, makeHttpServer, type Route } from '../gateway/http-server.ts'
import { Ingress } from '../gateway/ingress.ts'
import { metricsRoute } from '../gateway/routes/operate.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { LiveTelemetry } from '../telemetry/live-telemetry.ts'
import type { HostView } from './host-view.ts'
import { openLiveFrontDoor } from './live-front-door.ts'
import { startLiveIdentity } from './live-identity.ts'
import type { Seat } from './seat.ts'

interface ListenerParts {
  readonly config: Config
  readonly clock: Clock
  readonly control: Control
  readonly routes: readonly Route[]
  readonly telemetry: LiveTelemetry
  readonly host: HostView
  readonly onFault: HttpServerOptions['onFault']
  readonly io: Io
  readonly seat: Seat | undefined
}

/** The front door, and a second listener for `/metrics` where it has a port of its own. */
export async function openListeners({
  config,
  clock,
  control,
  routes,
  telemetry,
  host: view,
  onFault,
  io,
  seat,
}: ListenerParts): Promise<{ readonly servers: readonly HttpServer[]; readonly address: string }> {
  const { ingress: limits, ...server } = config.server
  const tokens = await startLiveIdentity(config, clock, io.err)
  const { host, metricsHost = host, metricsPort, bodyBytesMax } = server
  const options: HttpServerOptions = { ...server, makeRequestId: makeRequestIds(), onFault, tokens }
  const { journal } = telemetry
  const text = (hasExemplars: boolean) => view.metricsText(hasExemplars)
  const withKey = metricsRoute(text, (exchange) => control.metricsReaders.refuse(exchange))
  const ingress = new Ingress({
    clock,
    limits,
    bodyBytesMax,
    breathe,
    salt: makeIds()(),
    onRefused: (code, count) => journal.record({ kind: 'ingress-refused', at: clock.now(), code, count }),
  })
  const frontDoor = makeHttpServer(metricsPort === undefined ? [...routes, withKey] : routes, {
    ...options,
    ingress,
    errorsUnder: { '/v1/messages': ANTHROPIC_ERRORS },
  })
  openLiveFrontDoor(frontDoor, { config, clock, makeRequestId: options.makeRequestId, complain: io.err })
  frontDoor.once('close', () => tokens?.close())
  const scheme = server.tls.certificates.length > 0 ? 'https' : 'http'
  const address = await listen(frontDoor, { ...server, scheme, fd: seat?.listenFd })
  if (metricsPort === undefined) return { servers: [frontDoor], address }
  const metrics = makeHttpServer([metricsRoute(text)], { ...options, basePath: '' })
  await listen(metrics, { host: metricsHost, port: metricsPort, fd: seat?.metricsFd })
  return { servers: [frontDoor, metrics], address }
}

/** How a server ends, in order. */
export interface ServerEnd {
  /** Stops as a server does that is alone. */
  close(): Promise<void>
  /** Leaves the socket to other processes, answers what still comes, and then ends as `close` does. */
  retire(onLeft: () => void): Promise<void>
}

interface ServerEndParts {
  readonly config: Config
  readonly clock: Clock
  readonly platform: Platform
  readonly servers: readonly HttpServer[]
  readonly telemetry: LiveTelemetry
  readonly tell: (state: 'draining', because: string) => void
}

/**
 * A client that keeps connections uses each within seconds, and is then told to close it; what is idle for longer is
 * closed as at any stop.
 */
const RETIRE_US_MAX = 5_000_000

/** `closeParts` closes what served the answers, after the last one. */
export function serverEndOf(parts: ServerEndParts, closeParts: () => Promise<void>): ServerEnd {
  const { config, clock, servers, tell } = parts
  return {
    async close() {
      tell('draining', 'told to stop')
      await finishAnswers(parts, config.server.shutdownDelayMs)
      await closeParts()
    },
    async retire(onLeft) {
      tell('draining', 'another process takes its place')
      const ended = Promise.all(servers.map(({ open }) => open.retire()))
      onLeft()
      const lingerUs = Math.min(RETIRE_US_MAX, msToUs(config.server.shutdownGraceMs))
      await withinTime(clock, clock.now() + lingerUs, ended)
      await finishAnswers(parts, 0)
      await closeParts()
    },
  }
}

/** Readiness off, listeners closed, answers finished; what is left after the grace is called off. */
async function finishAnswers(
  { config: { server }, clock, platform, servers, telemetry }: ServerEndParts,
  delayMs: number,
): Promise<void> {
  platform.stepDown()
  if (delayMs > 0) {
    for (const { open } of servers) open.leave()
    await clock.sleep(msToUs(delayMs))
  }
  const answersEnded = platform.drain()
  void answersEnded.then(() => telemetry.endRecordings())
  const graceOver = clock.sleep(msToUs(server.shutdownGraceMs))
  void graceOver.then(() => platform.cancelAll('shutting-down'))
  const patienceEnded = graceOver.then(() => clock.sleep(LAST_WORDS_US))
  await Promise.all(servers.map((one) => closeServer(one, { answersEnded, patienceEnded })))
  await answersEnded
}
