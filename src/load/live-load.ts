import { type Clock, secondsToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import { RunClock } from '../base/run-clock.ts'
import type { Entry } from '../domain/entry.ts'
import { Client, type Serve } from '../sim/clients/client.ts'
import { PromptWords } from '../sim/clients/prompt-words.ts'
import { TraceClient } from '../sim/clients/trace-client.ts'
import type { TenantStream } from '../sim/scenario/scenario-config.ts'
import type { TraceRequest } from '../sim/traces/trace.ts'
import { LoadTarget } from './http-load-target.ts'
import { LoadScripts, LoadServe } from './load-serve.ts'

/**
 * A scenario's clients against a real server, in real time. Open loop: arrivals never wait for answers. The run ends
 * when its time is over and every request has ended or the grace period has passed; the remaining requests are then
 * cancelled.
 */
export interface LiveLoadOptions {
  readonly url: string
  readonly streams: readonly TenantStream[]
  /** A recorded workload instead of the streams; what the trace lacks is taken from the first stream. */
  readonly trace?: Iterable<TraceRequest>
  readonly durationS: number
  readonly seed: number
  /** Multiplies the rates. */
  readonly scale: number
  readonly keyOf: (tenantId: string) => string | undefined
  readonly modelOf: (model: string) => string
  readonly take: (entry: Entry) => void
  readonly inFlightMax: number
  readonly requestsMax: number
  readonly ignoresEos: boolean
  /** Time that answers have to end after the last arrival. */
  readonly graceS: number
  /** Called twice a second. */
  readonly onTick: (state: LoadState) => void
  /** Real time if absent. */
  readonly clock?: Clock
  /** Resolves to stop early; running requests are then cancelled. */
  readonly stop?: Promise<unknown>
}

export interface LoadState {
  readonly atS: number
  readonly durationS: number
  readonly inFlight: number
  readonly sent: number
}

export interface LoadEnd {
  readonly endAt: number
  readonly sent: number
  /** How late requests were sent, in milliseconds. */
  readonly lagMs: { readonly mean: number; readonly max: number; readonly over20MsRatio: number }
}

const TICK_MS = 500
/** Longer than ten thousand clients take to start, so that all of them begin at zero in every run. */
const SETUP_US = 50_000

/** Longest silence of a server that is merely slow. */
const SILENCE_MS_MAX = 300_000

export async function runLoad(options: LiveLoadOptions): Promise<LoadEnd> {
  const { url, streams, durationS, seed, scale, inFlightMax } = options
  const words = new PromptWords(seed)
  const live = options.clock ?? new LiveClock()
  const clock = new RunClock(live, live.now() + SETUP_US)
  const target = new LoadTarget({ url, connectionsMax: inFlightMax, silenceMsMax: SILENCE_MS_MAX })
  const scripts = new LoadScripts()
  const serving = new LoadServe({ ...options, clock, target, scripts, words })
  const endAt = secondsToUs(durationS)
  const serve: Serve = (...asked) => serving.serve(...asked)
  if (options.trace === undefined) {
    for (const { name, caller, spec } of streams) {
      new Client({ clock, scripts, serve, caller, spec, seed, name, endAt, load: scale }).start()
    }
  } else {
    const callers = [...new Map(streams.map(({ caller }) => [caller.tenant.id, caller])).values()]
    new TraceClient({ clock, scripts, serve, requests: options.trace, callers, spec: streams[0]!.spec, endAt }).start()
  }
  const state = (): LoadState => ({
    atS: Math.min(durationS, clock.now() / 1_000_000),
    durationS,
    inFlight: serving.inFlight,
    sent: serving.sentCount,
  })
  // The clock's own timers do not keep the process alive; this one does, as long as the run lasts.
  const ticker = setInterval(() => options.onTick(state()), TICK_MS)
  try {
    await Promise.race([ended(clock, endAt, serving, options.graceS), options.stop ?? new Promise(() => {})])
  } finally {
    clearInterval(ticker)
    serving.close()
    await target.close()
  }
  options.onTick(state())
  const { sum, max, count, over20Ms } = serving.lagUs
  const lagMs = {
    mean: sum / Math.max(1, count) / 1_000,
    max: max / 1_000,
    over20MsRatio: over20Ms / Math.max(1, count),
  }
  return { endAt: Math.min(endAt, clock.now()), sent: serving.sentCount, lagMs }
}

const DRAIN_LOOK_US = 20_000

async function ended(clock: Clock, endAt: number, serving: LoadServe, graceS: number): Promise<void> {
  while (clock.now() < endAt && !serving.isDone) await clock.sleep(Math.min(DRAIN_LOOK_US, endAt - clock.now()))
  while (serving.inFlight > 0 && clock.now() < endAt + secondsToUs(graceS)) await clock.sleep(DRAIN_LOOK_US)
}
