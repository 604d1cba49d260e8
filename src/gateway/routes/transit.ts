import { Cancellation } from '../../base/cancellation.ts'
import type { ScreeningTerms } from '../../domain/screening.ts'
import { serveRequest } from '../../lifecycle/serve-request.ts'
import { FormHead } from '../../wire/form-head.ts'
import { invalidRequest, type WireFault } from '../../wire/openai-error.ts'
import { readTransit, TRANSIT_WAYS, type TransitWay } from '../../wire/transit.ts'
import type { Caller } from '../authenticate.ts'
import { callerOrPeerFor, refuseCall } from '../check-call.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { TransitSink } from '../http-transit-sink.ts'
import { declaredBytesOf, dropRest, Upload, type UploadBreak, type UploadOptions } from '../http-upload.ts'
import { rateLimitHeaders } from '../rate-limit-headers.ts'
import { collectScreenedForm } from '../screen-form.ts'
import { type AskedTransit, HeldBody, toTransitRequest } from '../to-transit-request.ts'
import type { WholeDeps } from './whole-answer.ts'

/**
 * `/v1/audio/*`, `/v1/images/*`, `/v1/rerank`, `/tokenize`: endpoints that some engines have and that we pass through,
 * with the admission, fairness, budgets and cancellation of a chat. Bodies in JSON are held, because they are small;
 * forms with files pass through as they come.
 */
export interface TransitDeps extends WholeDeps {
  readonly uploadBytesMax: number
}

export function transitRoutes(deps: TransitDeps): Route[] {
  return TRANSIT_WAYS.map((way) => ({
    method: 'POST',
    path: way.path,
    handle: (exchange) => pass(deps, exchange, way),
  }))
}

async function pass(deps: TransitDeps, exchange: Exchange, way: TransitWay): Promise<void> {
  const caller = callerOrPeerFor(exchange, deps.keys, { route: way.route })
  if (caller === undefined) return
  const contentType = exchange.req.headers['content-type'] ?? ''
  const isForm = way.takesForms === true && /^multipart\/form-data\b/i.test(contentType)
  const terms = caller.tenant.screening
  if (isForm && terms !== undefined) await passHeldForm(deps, exchange, way, caller, terms)
  else if (isForm) await passForm(deps, exchange, way, caller)
  else await passJson(deps, exchange, way, caller)
}

async function passJson(deps: TransitDeps, exchange: Exchange, way: TransitWay, caller: Caller): Promise<void> {
  const collected = await collectScreened(exchange, deps, { tenant: caller.tenant, dialect: 'transit' })
  if (collected.kind === 'gone') return
  const checked = collected.kind === 'fault' ? collected : readTransit(collected.bytes)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const { bytes, found } = collected as Extract<typeof collected, { kind: 'ok' }>
  const body = new HeldBody(bytes, checked.value)
  await serve(deps, exchange, caller, { way, fields: checked.value, bytes: bytes.length, body, found })
}

async function passHeldForm(
  deps: TransitDeps,
  exchange: Exchange,
  way: TransitWay,
  caller: Caller,
  terms: ScreeningTerms,
): Promise<void> {
  const collected = await collectScreenedForm(exchange, { ...deps, tenant: caller.tenant, terms })
  if (collected.kind === 'gone') return
  if (collected.kind === 'fault') {
    exchange.sendFault(collected.fault)
    return
  }
  const { form, body, found } = collected
  await serve(deps, exchange, caller, { way, fields: fieldsOf(form), bytes: body.length, body, found })
}

const fieldsOf = ({ fields }: FormHead): Record<string, string> =>
  Object.fromEntries(Array.from(fields, ([name, { value }]) => [name, value]))

async function passForm(deps: TransitDeps, exchange: Exchange, way: TransitWay, caller: Caller): Promise<void> {
  const { req, visit } = exchange
  const options: UploadOptions = {
    clock: deps.clock,
    patienceUs: deps.stalledReaderUs,
    bytesMax: deps.uploadBytesMax,
  }
  const declared = declaredBytesOf(req)
  const refusal = (declared ?? 0) > deps.uploadBytesMax ? undefined : visit?.pass(declared ?? 0)
  if ((declared ?? 0) > deps.uploadBytesMax || refusal !== undefined) {
    if (refusal === undefined) exchange.sendFault(tooLarge(deps.uploadBytesMax))
    else exchange.sendRefusal(refusal)
    dropRest(exchange, options)
    return
  }
  const form = new FormHead(req.headers['content-type'] ?? '')
  const upload = new Upload(exchange, form, options)
  try {
    const read = await upload.readHead()
    if (typeof read !== 'string') exchange.sendRefusal(read)
    else if (read !== 'ok') tellBreak(exchange, read, deps)
    else if (isBroken(form, upload)) exchange.sendFault(unreadable(form.problem ?? 'its last part has no end'))
    else {
      await serve(deps, exchange, caller, { way, fields: fieldsOf(form), bytes: declared, body: upload })
    }
  } finally {
    upload.end()
  }
}

/** A form that is whole in its head, and has no end. */
const isBroken = (form: FormHead, upload: Upload): boolean =>
  form.problem !== undefined || (!form.isWhole && upload.isAllHeld)

type Passing = Pick<AskedTransit, 'way' | 'fields' | 'bytes' | 'body' | 'found'>

async function serve(deps: TransitDeps, exchange: Exchange, caller: Caller, passing: Passing): Promise<void> {
  const { req, id } = exchange
  const { route } = passing.way
  const clientAddress = (): string | undefined => exchange.clientAddress
  const read = toTransitRequest(
    {
      ...passing,
      id,
      caller,
      headers: req.headers,
      now: deps.clock.now(),
      contentType: req.headers['content-type'] ?? '',
      modelInAddress: modelInAddress(req.url ?? ''),
      isAllowed: (model) => caller.denial?.({ clientAddress, route, model }) === undefined,
    },
    deps.rules,
  )
  if (read.kind === 'fault') {
    exchange.sendFault(read.fault)
    return
  }
  const { request } = read
  if (refuseCall(exchange, caller, { route, ...request })) return
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('client-gone')
  })
  if (passing.body instanceof Upload) {
    passing.body.onBroken = (because) => {
      cancellation.cancel(because)
      tellBreak(exchange, because, deps)
    }
  }
  const rateLimits = (): string[] => rateLimitHeaders(deps.platform.rateLimits(request))
  const { clock, stalledReaderUs } = deps
  const sink = new TransitSink({ exchange, rateLimits, clock, cancellation, stalledReaderUs })
  await serveRequest(deps.platform, request, cancellation, sink)
}

/** A client that has gone is told nothing; one whose answer has begun is cut off. */
function tellBreak(exchange: Exchange, because: UploadBreak, { uploadBytesMax }: TransitDeps): void {
  if (because === 'client-gone') return
  if (!exchange.isOpen) exchange.res.destroy()
  else if (because === 'upload-too-large') exchange.sendFault(tooLarge(uploadBytesMax))
  else exchange.sendFault(invalidRequest('The form was not sent in time.', null, 'request-too-slow'))
}

const tooLarge = (bytesMax: number): WireFault =>
  invalidRequest(`The form is over the limit of ${bytesMax} bytes.`, null, 'request-too-large')

const unreadable = (why: string): WireFault =>
  invalidRequest(`The form could not be read: ${why}.`, null, 'invalid-file')

function modelInAddress(url: string): string | undefined {
  const query = url.indexOf('?')
  return query < 0 ? undefined : (new URLSearchParams(url.slice(query + 1)).get('model') ?? undefined)
}
