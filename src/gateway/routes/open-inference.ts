import { assert } from '../../base/assert.ts'
import type { OipMetadata } from '../../wire/oip.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { readTensors, tokenTensorIn } from '../../wire/tensors.ts'
import { callerOrPeerFor, refuseCall } from '../check-call.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { KnownModel } from '../model-directory.ts'
import { OIP_ERRORS } from '../oip-errors.ts'
import { withTrueSize } from '../prompt-size.ts'
import { tokenIdsFault } from '../screen-body.ts'
import { toTensorRequest } from '../to-whole-request.ts'
import { serveWhole, type WholeDeps } from './whole-answer.ts'

/**
 * The Open Inference Protocol, version 2, for ranking and vision models: health, metadata, readiness and `infer`, with
 * the usual admission, fairness and budgets. Errors are `{"error": "…"}`. Health needs no key.
 */
export interface OpenInferenceDeps extends WholeDeps {
  readonly version: string
  readonly readiness: () => { readonly isReady: boolean; readonly because: string }
  /** Whether a replica of this model takes requests. */
  readonly isModelReady: (model: string) => boolean
  /** Names and shapes of the model's tensors, if a replica reports them. */
  readonly metadataOf: (model: string) => Promise<OipMetadata | undefined>
}

export function openInferenceRoutes(deps: OpenInferenceDeps): Route[] {
  const about = { name: 'spillway', version: deps.version, extensions: [] }
  return [
    { method: 'GET', path: '/v2', handle: (exchange) => exchange.sendJson(200, JSON.stringify(about)) },
    {
      method: 'GET',
      path: '/v2/health/live',
      isUnmetered: true,
      handle: (exchange) => exchange.sendJson(200, '{"live":true}'),
    },
    {
      method: 'GET',
      path: '/v2/health/ready',
      isUnmetered: true,
      handle(exchange) {
        const { isReady } = deps.readiness()
        exchange.sendJson(isReady ? 200 : 503, JSON.stringify({ ready: isReady }))
      },
    },
    { method: 'GET', path: '/v2/models/*', handle: (exchange, rest) => ask(deps, exchange.inWords(OIP_ERRORS), rest) },
    {
      method: 'POST',
      path: '/v2/models/*',
      handle: (exchange, rest) => infer(deps, exchange.inWords(OIP_ERRORS), rest),
    },
  ]
}

/** `NAME[/versions/VERSION][/what]`. A name may have slashes of its own. */
interface Place {
  readonly model: string
  readonly version: string | undefined
  readonly what: string
}

function placeOf(rest: string, whats: readonly string[]): Place {
  const what = whats.find((one) => rest.endsWith(`/${one}`)) ?? ''
  const named = what === '' ? rest : rest.slice(0, -what.length - 1)
  const versioned = /^(.+)\/versions\/([^/]+)$/.exec(named)
  return { model: versioned?.[1] ?? named, version: versioned?.[2], what }
}

async function ask(deps: OpenInferenceDeps, exchange: Exchange, rest: string): Promise<void> {
  const caller = callerOrPeerFor(exchange, deps.keys, { route: 'open-inference' })
  if (caller === undefined) return
  const place = placeOf(rest, ['ready'])
  const known = modelAt(deps, exchange, place)
  if (known === undefined) return
  const { name } = known.model
  if (refuseCall(exchange, caller, { route: 'open-inference', model: name })) return
  if (place.what === 'ready') {
    const isReady = deps.isModelReady(name)
    exchange.sendJson(isReady ? 200 : 503, JSON.stringify({ name: place.model, ready: isReady }))
    return
  }
  const told = await deps.metadataOf(name)
  const { platform = 'spillway', inputs = [], outputs = [] } = told ?? {}
  exchange.sendJson(200, JSON.stringify({ name: place.model, versions: versionsOf(known), platform, inputs, outputs }))
}

async function infer(deps: OpenInferenceDeps, exchange: Exchange, rest: string): Promise<void> {
  const caller = callerOrPeerFor(exchange, deps.keys, { route: 'open-inference' })
  if (caller === undefined) return
  const place = placeOf(rest, ['infer'])
  if (place.what !== 'infer') {
    exchange.sendFault(invalidRequest(`Unknown request URL: POST /v2/models/${rest}.`, null, 'unknown-url'))
    return
  }
  const known = modelAt(deps, exchange, place)
  if (known === undefined) return
  if (place.version !== undefined && versionsOf(known).length > 1) {
    const message = `The rollout of '${place.model}' chooses the version. Leave the version out of the path.`
    exchange.sendFault(invalidRequest(message, 'version', 'unsupported-parameter'))
    return
  }
  const collected = await collectScreened(exchange, deps, { tenant: caller.tenant, dialect: 'tensors' })
  if (collected.kind === 'gone') return
  const checked = collected.kind === 'fault' ? collected : readTensors(collected.bytes)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const { headers } = exchange.req
  const { model, version } = place
  const body = checked.value
  const found = collected.kind === 'ok' ? collected.found : undefined
  const tokens = found === undefined ? undefined : tokenTensorIn(body)
  if (tokens !== undefined) {
    exchange.sendFault(tokenIdsFault(tokens))
    return
  }
  const read = await withTrueSize(
    toTensorRequest({ id: exchange.id, body, headers, caller, now: deps.clock.now(), model, found }, deps.rules),
    deps.rules,
  )
  if (read.kind === 'fault') {
    exchange.sendFault(read.fault)
    return
  }
  if (refuseCall(exchange, caller, { route: 'open-inference', ...read.request })) return
  await serveWhole(deps, exchange, read.request, (result) => {
    assert(result.kind === 'tensors', 'tensors are answered with tensors')
    const more = version === undefined ? {} : { model_version: version }
    return JSON.stringify({ model_name: model, ...more, ...result.document, id: body.id ?? exchange.id })
  })
}

/** The model of the address; undefined after a 404 has been sent. */
function modelAt(deps: OpenInferenceDeps, exchange: Exchange, { model, version }: Place): KnownModel | undefined {
  const known = deps.rules.models.resolve(model)
  if (known !== undefined && (version === undefined || versionsOf(known).includes(version))) return known
  const which = known === undefined ? `The model '${model}'` : `Version '${version}' of the model '${model}'`
  exchange.sendFault(invalidRequest(`${which} does not exist.`, 'model', 'model-not-found'))
  return undefined
}

/** A release's id is `MODEL@VERSION`. */
const versionsOf = ({ model }: KnownModel): string[] => model.releases.map((id) => id.slice(id.lastIndexOf('@') + 1))
