import type { Request } from '../domain/request.ts'
import type { OpenBody, Transit, TransitBody, TransitRoute } from '../domain/transit.ts'
import { invalidRequest, type WireFault } from '../wire/openai-error.ts'
import { type TransitWay, transitBody } from '../wire/transit.ts'
import type { KnownModel, ModelDirectory } from './model-directory.ts'
import { type Asker, headerText, termsOf } from './request-terms.ts'
import { screeningOf } from './screen-body.ts'
import { noSuchModel, type RequestRules, wrongKind } from './to-request.ts'

/**
 * A body that passes through becomes a `Request`: its model, the endpoint at the engine, and a price. Wishes come in
 * headers: nobody has checked the body's own fields.
 */
export interface AskedTransit extends Omit<Asker, 'body'> {
  readonly way: TransitWay
  /** Fields of the body as far as they are known. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly bytes: number | undefined
  readonly contentType: string
  readonly body: TransitBody
  /** The model's name in the address, for forms that name it behind a large file. */
  readonly modelInAddress: string | undefined
  /** Whether the caller may use this model. */
  readonly isAllowed: (model: string) => boolean
}

export type TransitRead =
  | { readonly kind: 'ok'; readonly request: Request }
  | { readonly kind: 'fault'; readonly fault: WireFault }

export function toTransitRequest(asked: AskedTransit, rules: RequestRules): TransitRead {
  const { way, fields, bytes } = asked
  const named = fields['model'] ?? asked.modelInAddress
  const known = typeof named === 'string' ? rules.models.resolve(named) : onlyModel(rules.models, asked)
  if (known === undefined) return typeof named === 'string' ? asFault(noSuchModel(named)) : noModel(asked)
  if (!isServedAt(known, way.route)) return asFault(wrongKind(known, `is not served at ${way.path}`))
  const price = way.price({ fields, bytes, estimateTokens: rules.estimateTokens })
  const request: Request = {
    ...termsOf({ ...asked, body: {} }),
    kind: 'transit',
    model: known.model.name,
    segments: price.map((tokens) => ({ role: 'user', tokens: Math.max(1, tokens) })),
    prefixHashes: [],
    outputTokensMax: undefined,
    choiceCount: 1,
    isStreamed: false,
    text: undefined,
    ...(asked.found !== undefined && { screening: screeningOf(asked.found, asked.found.texts) }),
    transit: transitOf(asked),
  }
  return { kind: 'ok', request }
}

function transitOf({ way, contentType, headers, body }: AskedTransit): Transit {
  const { route, enginePath, isRooted } = way
  return {
    route,
    path: enginePath,
    contentType,
    accept: headerText(headers.accept),
    body,
    ...(isRooted && { isRooted }),
  }
}

const isServedAt = ({ model, features }: KnownModel, route: TransitRoute): boolean =>
  features.transit === true && model.transit?.includes(route) === true

function onlyModel(models: ModelDirectory, { way, isAllowed }: AskedTransit): KnownModel | undefined {
  const [only, ...others] = models.list().filter((known) => isServedAt(known, way.route) && isAllowed(known.model.name))
  return others.length === 0 ? only : undefined
}

function noModel({ body, way }: AskedTransit): TransitRead {
  const advice = body.isUpload
    ? `Put it in front of the file, or in the address: ${way.path}?model=NAME.`
    : 'GET /v1/models lists the models.'
  const message = `Missing required parameter: 'model'. ${advice}`
  return { kind: 'fault', fault: invalidRequest(message, 'model', 'missing-required-parameter') }
}

/** `noSuchModel` and `wrongKind` answer for requests that may also be read well. */
function asFault(read: ReturnType<typeof noSuchModel>): TransitRead {
  if (read.kind === 'fault') return read
  throw new Error('a fault was expected')
}

/** A body in JSON, which is in memory: it can be sent as often as there are attempts. */
export class HeldBody implements TransitBody {
  readonly isUpload = false
  readonly canOpen = true
  readonly #bytes: Buffer
  readonly #fields: Readonly<Record<string, unknown>>

  constructor(bytes: Buffer, fields: Readonly<Record<string, unknown>>) {
    this.#bytes = bytes
    this.#fields = fields
  }

  open(model: string): OpenBody {
    const body = transitBody(this.#bytes, this.#fields, model)
    return { length: body.length, pieces: onePiece(body), close: () => {} }
  }
}

async function* onePiece(body: Buffer): AsyncGenerator<Uint8Array> {
  yield body
}
