import packageJson from '../../package.json' with { type: 'json' }
import type { LiveBackends } from '../assembly/live-backends.ts'
import type { TokenCounter } from '../backends/live-token-counter.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { makeIds, makeSecretSeed } from '../base/live-ids.ts'
import { Rng } from '../base/rng.ts'
import type { Config } from '../config/schema.ts'
import { REGISTRY_SCHEMAS } from '../config/with-registry.ts'
import type { Control } from '../control/control.ts'
import type { NameFinder } from '../domain/screening.ts'
import type { Route } from '../gateway/http-server.ts'
import { openApiDocument } from '../gateway/openapi.ts'
import { adminRoutes } from '../gateway/routes/admin.ts'
import { admissionRoutes } from '../gateway/routes/admission.ts'
import { auditRoutes } from '../gateway/routes/audit.ts'
import { autoscaleRoutes } from '../gateway/routes/autoscale.ts'
import { azureRoutes } from '../gateway/routes/azure.ts'
import { batchRoutes } from '../gateway/routes/batches.ts'
import { corporaRoutes } from '../gateway/routes/corpora.ts'
import type { StoreDeps } from '../gateway/routes/corpora-answer.ts'
import { embeddingsRoute } from '../gateway/routes/embeddings.ts'
import { explainRoutes } from '../gateway/routes/explain.ts'
import { fileRoutes } from '../gateway/routes/files.ts'
import { generateRoutes } from '../gateway/routes/generate.ts'
import { inferRoute } from '../gateway/routes/infer.ts'
import { meRoute } from '../gateway/routes/me.ts'
import { messagesRoutes } from '../gateway/routes/messages.ts'
import { modelRoutes } from '../gateway/routes/models.ts'
import { moderationsRoute } from '../gateway/routes/moderations.ts'
import { openInferenceRoutes } from '../gateway/routes/open-inference.ts'
import { operateRoutes } from '../gateway/routes/operate.ts'
import { recordRoute } from '../gateway/routes/record.ts'
import { regionRoute } from '../gateway/routes/region.ts'
import { outputsRoute } from '../gateway/routes/rollout-outputs.ts'
import { storedCompletionRoutes } from '../gateway/routes/stored-completions.ts'
import { storedResponseRoutes } from '../gateway/routes/stored-responses.ts'
import { tenancyRoutes } from '../gateway/routes/tenancy.ts'
import { transitRoutes } from '../gateway/routes/transit.ts'
import { usageRoutes } from '../gateway/routes/usage.ts'
import { witnessRoute } from '../gateway/routes/witness.ts'
import type { RequestRules } from '../gateway/to-request.ts'
import type { Archive } from '../lifecycle/archive-ports.ts'
import type { LedgerStore } from '../lifecycle/ledger-ports.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { PlatformWorkBudgets } from '../lifecycle/reserve-work.ts'
import type { Moderator } from '../lifecycle/screening-ports.ts'
import { isSizeInDoubt } from '../lifecycle/size-in-doubt.ts'
import { estimateTokens } from '../policy/planning/estimate.ts'
import { makeFinders } from '../safety/entity-finders.ts'
import type { LiveTelemetry } from '../telemetry/live-telemetry.ts'
import type { HostView } from './host-view.ts'
import type { LiveAudit } from './live-audit.ts'
import type { LiveCell } from './live-cell.ts'
import type { LiveJobs } from './live-jobs.ts'
import type { LiveRetrieval } from './live-retrieval.ts'
import type { LiveSharing } from './live-sharing.ts'

/**
 * All routes of the gateway except `/metrics`, which may have its own listener. Routes are made once, from settings that
 * need a restart; settings that may change at run time are asked of `control` with every request.
 */
export interface RouteParts {
  readonly config: Pick<Config, 'server' | 'retrieval' | 'regions' | 'jobs'>
  readonly clock: Clock
  readonly platform: Platform
  readonly backends: LiveBackends
  readonly tokens: TokenCounter
  readonly control: Control
  readonly telemetry: LiveTelemetry
  readonly host: HostView
  readonly retrieval: LiveRetrieval
  readonly archive: Archive
  readonly sharing: Pick<LiveSharing, 'detail' | 'salt' | 'tell'>
  readonly cell: LiveCell
  readonly ledger: { readonly store: LedgerStore | undefined }
  readonly audit: Pick<LiveAudit, 'desk' | 'detail'>
  readonly moderator: Moderator
  readonly jobs: Pick<LiveJobs, 'store' | 'files' | 'wake' | 'background'>
  readonly names: NameFinder
}

export function liveRoutes(parts: RouteParts): Route[] {
  const { config, clock, platform, backends, control, telemetry, host, retrieval, archive, cell } = parts
  const { models, tenants: keys } = control
  const { background } = parts.jobs
  const rules = rulesOf(parts)
  const { bodyBytesMax } = config.server
  const stalledReaderUs = msToUs(config.server.stalledReaderMs)
  const budgets = new PlatformWorkBudgets(platform)
  const whole = { platform, clock, keys, rules, bodyBytesMax, stalledReaderUs }
  const { aheadBytesMax, keepAliveMs } = config.server
  const generation = { ...whole, aheadBytesMax, keepAliveUs: msToUs(keepAliveMs), archive, background, budgets }
  const openAi = [...generateRoutes(generation), embeddingsRoute(whole), ...modelRoutes(models, keys)]
  return [
    ...openAi,
    ...azureRoutes(openAi, generation),
    ...messagesRoutes(generation),
    ...storedCompletionRoutes({ archive, keys, budgets, bodyBytesMax, rules }),
    ...storedResponseRoutes({ archive, background, keys, budgets, bodyBytesMax, rules }),
    moderationsRoute({ moderator: parts.moderator, keys, budgets, bodyBytesMax, rules }),
    inferRoute({ platform, clock, keys, rules, bodyBytesMax }),
    ...transitRoutes({ ...whole, uploadBytesMax: config.server.uploadBytesMax }),
    ...openInferenceRoutes({
      ...whole,
      version: packageJson.version,
      readiness: () => readiness(platform, control),
      isModelReady: (model) => isModelReady(platform, model),
      metadataOf: (model) => backends.metadataOf(model),
    }),
    ...explainRoutes({
      keys,
      admins: control.admins,
      storyOf: (ticketId) => host.storyOf(ticketId),
      refusals: (ask) => host.refusals(ask),
      lineOf: (ticketId) => parts.ledger.store?.find(ticketId),
    }),
    recordRoute({
      admins: control.admins,
      clock,
      keepAliveUs: msToUs(config.server.keepAliveMs),
      record: (out) => telemetry.record(out, clock.now()),
    }),
    ...(config.regions.local === undefined ? [] : [regionRoute(config.regions.local, keys, platform)]),
    ...(config.regions.local === undefined ? [] : [witnessRoute(keys, () => parts.audit.desk)]),
    ...auditRoutes({ admins: control.admins, keys, tenancy: control.tenancy, desk: () => parts.audit.desk }),
    outputsRoute({ admins: control.admins, desk: () => parts.audit.desk, outputs: (ask) => host.outputs(ask) }),
    ...corporaRoutes({ corpora: retrieval.corpora, keys, budgets, bodyBytesMax, rules }),
    ...jobRoutes(parts, { keys, budgets, bodyBytesMax, rules }),
    ...adminRoutes({ admin: host.admin, keys: control.admins, bodyBytesMax }),
    ...admissionRoutes({ admin: host.admin, keys: control.admins, bodyBytesMax }),
    ...tenancyRoutes({ tenancy: control.tenancy, admins: control.admins, keys, bodyBytesMax }),
    meRoute({
      keys,
      tenancy: control.tenancy,
      budgetsOf: (caller) => platform.budgetsOf(caller),
      refusals: (ask) => host.refusals(ask),
    }),
    ...usageRoutes({ clock, keys, admins: control.admins, tenancy: control.tenancy, ledger: () => parts.ledger.store }),
    ...autoscaleRoutes({
      readers: control.metricsReaders,
      poolIds: () => platform.pools.map(({ id }) => id),
      signalsOf: (poolId) => platform.autoscaling.signalsOf(poolId),
    }),
    ...operateRoutes({
      readiness: () =>
        [parts.sharing.detail(), cell.describe(), parts.audit.detail()].reduce(
          withDetail,
          readiness(platform, control),
        ),
      openApi: openApiDocument({
        version: packageJson.version,
        basePath: config.server.basePath,
        admin: REGISTRY_SCHEMAS,
      }),
    }),
  ]
}

/** Files and jobs. */
function jobRoutes({ config, clock, jobs, retrieval: { corpora } }: RouteParts, deps: StoreDeps): Route[] {
  const { store, files, wake } = jobs
  const patienceUs = msToUs(config.server.stalledReaderMs)
  const jobFiles = { store, files, clock, patienceUs, makeId: makeIds(), ...config.jobs }
  return [
    ...fileRoutes({ ...deps, corpora, jobFiles }),
    ...batchRoutes({ ...deps, jobFiles, openMax: config.jobs.openMax, wake }),
  ]
}

function rulesOf({ config, platform, backends, tokens, control, sharing, names }: RouteParts): RequestRules {
  const { passagesDefault, passagesMax } = config.retrieval
  const sampling = Rng.stream(makeSecretSeed(), 'prompt-sampling')
  return {
    models: control.models,
    estimateTokens: (text) => estimateTokens(text, sampling),
    counter: {
      knows: (model) => backends.hasKnownTokenizer(model),
      count: (question) => tokens.count(question),
      isInDoubt: (request) => isSizeInDoubt(platform, request),
    },
    get salt() {
      return sharing.salt()
    },
    finderOf: makeFinders(),
    names,
    passagesDefault,
    passagesMax,
    get choicesMax() {
      return control.wanted().settings.limits.choicesMax
    },
    get promptTokensMax() {
      return control.wanted().settings.limits.promptTokensMax
    },
    get flagHeaders() {
      return control.wanted().flagHeaders
    },
  }
}

function readiness(platform: Platform, { registry, tenancy }: Control): { isReady: boolean; because: string } {
  if (platform.isSteppingDown) return { isReady: false, because: 'shutting down' }
  if (!registry.isSettled) return { isReady: false, because: 'the registry has not been read yet' }
  if (!tenancy.tenancy.isSettled) return { isReady: false, because: 'the keys have not been read yet' }
  const { readyReplicas } = platform.turnstile.view()
  if (readyReplicas === 0) return { isReady: false, because: 'no replica is ready' }
  const [denied, ...more] = platform.policies.health.denials()
  const but = denied === undefined ? '' : `, and ${1 + more.length} denied: ${denied}`
  return { isReady: true, because: `${readyReplicas} replicas are ready${but}` }
}

/** Whether limits are shared at present, or who leads, is worth saying and changes nothing about readiness. */
const withDetail = (told: { isReady: boolean; because: string }, detail: string | undefined) =>
  detail === undefined || !told.isReady ? told : { ...told, because: `${told.because}; ${detail}` }

function isModelReady({ policies }: Platform, model: string): boolean {
  const releases = policies.models.get(model)?.releases ?? []
  const pools = releases.flatMap((releaseId) => policies.poolsByRelease.get(releaseId) ?? [])
  return pools.some(({ pool }) => (policies.dispatcher.poolFacts(pool.id)?.readyReplicaCount ?? 0) > 0)
}
