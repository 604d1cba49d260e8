import { timingSafeEqual } from 'node:crypto'
import { batchOptionsOf } from '../assembly/batch-options.ts'
import { type EngineChanges, engineOptionsOf } from '../assembly/engine-options.ts'
import { makePromptReader } from '../assembly/live-backends.ts'
import { type BatchDriver, EngineDriver } from '../backends/engine-driver.ts'
import { SimulatedBackend } from '../backends/simulated.ts'
import { SimulatedBatchBackend } from '../backends/simulated-batch.ts'
import { SimulatedResults } from '../backends/simulated-results.ts'
import { SimulatedText } from '../backends/simulated-text.ts'
import { type Clock, msToUs, usToMs, usToSeconds } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import { makeRequestIds } from '../base/live-ids.ts'
import type { Io, Running } from '../base/running.ts'
import { ConfigError } from '../config/config-error.ts'
import * as defaults from '../config/defaults.ts'
import type { Config } from '../config/schema.ts'
import { BatchEngine } from '../engine/batch-engine.ts'
import { Engine, type EngineOptions } from '../engine/engine.ts'
import { digestOf } from '../gateway/authenticate.ts'
import { closeServer, LAST_WORDS_US, listen } from '../gateway/http-listen.ts'
import { makeHttpServer, type Route } from '../gateway/http-server.ts'
import { readyRoute } from '../gateway/routes/operate.ts'
import { BatchWatch, engineViewOf } from './batch-watch.ts'
import { engineEmbeddingRoutes, noEmbeddings } from './engine-embeddings.ts'
import { VLLM_ERRORS } from './engine-errors.ts'
import { describeFaults, type FaultOptions, Faults, NO_FAULTS } from './engine-faults.ts'
import { engineGenerateRoutes } from './engine-generate.ts'
import { EngineMetrics } from './engine-metrics.ts'
import { engineRoutes } from './engine-routes.ts'
import type { EngineFacts } from './engine-served.ts'
import { InFlight } from './in-flight.ts'
import { ServingState } from './serving-state.ts'

/**
 * One simulated engine over HTTP: vLLM's API, vLLM's metrics, a GPU's timing, and no GPU. It looks like vLLM to a
 * router, a dashboard or an autoscaler, and can be told to misbehave.
 *
 * Requests wait in the engine, as in vLLM. vLLM's queue is unbounded; this one is bounded by `waitingMax`, above which
 * requests get 503.
 */
export interface EngineServerOptions {
  /** Name to serve under: any name, or that of a configured model, whose context and profile are then used. */
  readonly model?: string | undefined
  readonly profile?: string | undefined
  /** Kind of the model; the configured model's if absent. */
  readonly kind?: EngineKind | undefined
  readonly contextTokensMax?: number | undefined
  readonly changes?: EngineChanges
  readonly seed?: number | undefined
  /** Tokens of a frame after the first; 1 if absent. */
  readonly streamInterval?: number | undefined
  /** Key required for `/v1`; none if absent. */
  readonly apiKey?: string | undefined
  readonly faults?: FaultOptions
  /** Time in which the server reports not ready, like an engine that loads its weights. */
  readonly loadSeconds?: number | undefined
  /** Ends the process in a simulated crash. */
  readonly exit: (code: number) => void
}

export type EngineKind = 'chat' | 'embedding'

/** Longest queue: minutes of work for any profile, longer than clients wait. */
const WAITING_MAX = 16_384

const CRASH_EXIT_CODE = 70

export async function serveEngine(
  config: Config,
  io: Io,
  options: EngineServerOptions,
  clock: Clock = new LiveClock(),
): Promise<Running> {
  const seed = options.seed ?? config.seed
  const resolved = resolve(config, options)
  const { model, contextTokensMax, engineOptions } = resolved
  const metrics = new EngineMetrics({ model, contextTokensMax, limits: engineOptions.limits })
  const reader = await makePromptReader(contextTokensMax)
  const inFlight = new InFlight()
  const faults = options.faults ?? NO_FAULTS
  const facts: EngineFacts = {
    model,
    createdAtS: Math.floor(usToSeconds(clock.now())),
    contextTokensMax,
    clock,
    reader,
    metrics,
    streamInterval: options.streamInterval ?? 1,
    faults: new Faults(faults, seed),
    bodyBytesMax: config.server.bodyBytesMax,
    stalledReaderUs: msToUs(config.server.stalledReaderMs),
    inFlight,
    crash() {
      io.err(`spillway engine: crashing, as it was told to after ${faults.crashAfter} requests`)
      options.exit(CRASH_EXIT_CODE)
    },
  }
  const state = new ServingState(clock, options.loadSeconds)
  const routes = [...modelRoutes(config, resolved, facts, seed), ...engineRoutes(facts)]
    .map((route) => withKey(route, options.apiKey))
    .map((route) => withReadiness(route, state))
  routes.push(readyRoute(() => state.readiness()))
  // An engine reads everything, as vLLM does: the gateway in front of it has the allowances.
  const { ingress: _noIngress, cors: _noPages, ...serverOptions } = config.server
  const server = makeHttpServer(routes, {
    ...serverOptions,
    basePath: '',
    makeRequestId: makeRequestIds(),
    errors: VLLM_ERRORS,
    onFault: (where, error) => io.err(`spillway engine: ${where}: ${String((error as Error)?.stack ?? error)}`),
  })
  const address = await listen(server, { host: config.engine.listenHost, port: config.engine.listenPort })
  io.out(hello({ address, ...resolved, options }))

  return {
    address,
    async close() {
      state.leave()
      server.open.leave()
      if (serverOptions.shutdownDelayMs > 0) await clock.sleep(msToUs(serverOptions.shutdownDelayMs))
      state.close()
      const graceOver = clock.sleep(msToUs(config.server.shutdownGraceMs))
      void graceOver.then(() => inFlight.cancelAll('shutting-down'))
      const patienceEnded = graceOver.then(() => clock.sleep(LAST_WORDS_US))
      await closeServer(server, { answersEnded: inFlight.ended(), patienceEnded })
    },
  }
}

/** The routes of the model itself. */
function modelRoutes(config: Config, resolved: Resolved, facts: EngineFacts, seed: number): Route[] {
  const { kind, profile, contextTokensMax, engineOptions, changes } = resolved
  const { clock, metrics, reader } = facts
  if (kind === 'embedding') {
    const engine = new BatchEngine(batchOptionsOf(config, profile, changes))
    const driver: BatchDriver = new EngineDriver(engine, clock, new BatchWatch(metrics))
    metrics.watch(() => engineViewOf(driver.view()))
    const results = new SimulatedResults({ kind, reader, contextTokensMax })
    return engineEmbeddingRoutes({ ...facts, backend: new SimulatedBatchBackend(driver, results) })
  }
  const driver = new EngineDriver(new Engine(engineOptions), clock, metrics)
  metrics.watch(() => driver.view())
  const { blockTokens } = engineOptions.limits
  const text = new SimulatedText({ reader, seed, blockTokens, contextTokensMax })
  return [...engineGenerateRoutes({ ...facts, backend: new SimulatedBackend(driver, text) }), noEmbeddings()]
}

interface Resolved {
  readonly model: string
  readonly kind: EngineKind
  /** Changes to the profile. */
  readonly changes: EngineChanges
  readonly profile: string
  readonly contextTokensMax: number
  readonly engineOptions: EngineOptions
}

/** The options given, else those of the configured model of that name, else the defaults. */
function resolve(config: Config, options: EngineServerOptions): Resolved {
  const model = options.model ?? config.models[0]?.name ?? 'simulated'
  const configured = config.models.find(({ name }) => name === model)
  const backend = config.pools.find((pool) => pool.model === model)?.backend
  const profile = options.profile ?? (backend?.kind === 'simulated' ? backend.profile : defaults.PROFILE_SMALL)
  const changes = { waitingMax: WAITING_MAX, seed: options.seed, ...definedOf(options.changes) }
  const engineOptions = engineOptionsOf(config, profile, changes)
  const kind = options.kind ?? configured?.kind ?? 'chat'
  if (kind !== 'chat' && kind !== 'embedding') {
    throw new ConfigError([
      `${model} is for ${kind}, which no server of vLLM's kind has. Name a chat or embedding model.`,
    ])
  }
  const { blockCount, blockTokens } = engineOptions.limits
  const wanted = options.contextTokensMax ?? configured?.contextTokensMax ?? defaults.CONTEXT_TOKENS_MAX
  // As in vLLM, one sequence of full length always fits.
  return { model, kind, changes, profile, contextTokensMax: Math.min(wanted, blockCount * blockTokens), engineOptions }
}

const definedOf = (changes: EngineChanges = {}): EngineChanges =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))

/** As in vLLM, these tell routers whether to send requests; the others answer until the delay of a stop is over. */
const TELLS_HEALTH = ['/health', '/ping']

function withReadiness(route: Route, state: ServingState): Route {
  const mayAnswer = TELLS_HEALTH.includes(route.path) ? () => state.readiness().isReady : () => state.takesRequests
  return {
    ...route,
    handle(exchange, rest) {
      if (mayAnswer()) return route.handle(exchange, rest)
      exchange.sendRefusal({
        code: 'no-replica',
        because: 'The engine is not ready.',
        blame: 'platform',
        retryAfterUs: 1_000_000,
      })
    },
  }
}

/** As in vLLM, only paths under `/v1` require the key. */
function withKey(route: Route, apiKey: string | undefined): Route {
  if (apiKey === undefined || !route.path.startsWith('/v1/')) return route
  const wanted = Buffer.from(digestOf(apiKey))
  return {
    ...route,
    handle(exchange, rest) {
      const token = /^bearer +(.+)$/i.exec(exchange.req.headers.authorization ?? '')?.[1] ?? ''
      if (timingSafeEqual(Buffer.from(digestOf(token)), wanted)) return route.handle(exchange, rest)
      exchange.sendJson(401, '{"error":"Unauthorized"}')
    },
  }
}

interface Hello extends Resolved {
  readonly address: string
  readonly options: EngineServerOptions
}

function hello({ address, model, kind, profile, contextTokensMax, engineOptions, options }: Hello): string {
  const { sequencesMax, tokenBudget, blockCount, blockTokens, staticBatching } = engineOptions.limits
  const { faults = NO_FAULTS, loadSeconds = 0, changes, streamInterval = 1 } = options
  const trouble = [
    ...(loadSeconds > 0 ? [`loads its weights for ${loadSeconds} s`] : []),
    ...(changes?.slowdown === undefined ? [] : [`steps take ${changes.slowdown} times as long`]),
    ...describeFaults(faults),
  ]
  return [
    '',
    `  Spillway engine is listening on ${address}`,
    '',
    `  model     ${model}, ${kind === 'chat' ? '' : 'for embeddings, '}${contextTokensMax} tokens of context`,
    `  profile   ${profile}: ${sequencesMax} sequences, ${tokenBudget} tokens a step, ${blockCount} blocks of ${blockTokens}`,
    ...(staticBatching === undefined || kind !== 'chat'
      ? []
      : [
          `  batches   each runs until its last answer is done, after a window of ${usToMs(staticBatching.windowUs)} ms`,
        ]),
    ...(streamInterval > 1 ? [`  frames    the first token, then ${streamInterval} tokens each`] : []),
    ...(trouble.length > 0 ? [`  trouble   ${trouble.join('; ')}`] : []),
    `  metrics   ${address}/metrics`,
    '',
  ].join('\n')
}
