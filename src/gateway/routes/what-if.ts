import { Type } from '../../base/schema.ts'
import { type Checked, makeCheck } from '../../wire/check.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { andThen, readStorable } from '../../wire/read-body.ts'
import { collectBody } from '../collect-body.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'

/**
 * "What if", for operators: a shipped scenario as it is and changed, simulated beside the server. The answer is lines of
 * JSON: how far it is, and at last both reports. Who closes the connection ends the simulation.
 */
export interface WhatIfDesk {
  names(): readonly string[]
  scenario(name: string): object | undefined
  /** Undefined: another one runs. */
  begin(ask: WhatIfBody, onStep: (step: object) => void): { readonly end: Promise<object>; stop(): void } | undefined
}

const factor = { exclusiveMinimum: 0, maximum: 20 }
const WhatIfSchema = Type.Object(
  {
    scenario: Type.String({ minLength: 1, maxLength: 100 }),
    model: Type.Optional(Type.String({ maxLength: 200 })),
    replicas: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    load: Type.Optional(Type.Number(factor)),
    tenant: Type.Optional(Type.String({ maxLength: 200 })),
    tenantRate: Type.Optional(Type.Number(factor)),
  },
  { additionalProperties: false },
)
export interface WhatIfBody {
  readonly scenario: string
  readonly model?: string
  readonly replicas?: number
  readonly load?: number
  readonly tenant?: string
  readonly tenantRate?: number
}
const checkBody = makeCheck(WhatIfSchema)
const BODY_BYTES_MAX = 4_096

type WhatIfHandle = (exchange: Exchange, rest: string) => Promise<void> | void

export interface WhatIfPlace {
  readonly path: string
  /** Headers of every answer. */
  readonly guards: readonly string[]
  /** Turns away who may not. */
  readonly forOperators: (handle: WhatIfHandle) => WhatIfHandle
}

export function whatIfRoutes(desk: WhatIfDesk, { path, guards, forOperators }: WhatIfPlace): Route[] {
  return [
    { method: 'GET', path, handle: forOperators((exchange) => tellScenarios(desk, exchange, guards)) },
    {
      method: 'GET',
      path: `${path}/*`,
      handle: forOperators((exchange, name) => tellScenario(desk, exchange, name, guards)),
    },
    { method: 'POST', path, handle: forOperators((exchange) => runWhatIf(desk, exchange, guards)) },
  ]
}

function tellScenarios(desk: WhatIfDesk, exchange: Exchange, guards: readonly string[]): void {
  exchange.sendJson(200, JSON.stringify({ data: desk.names() }), guards)
}

function tellScenario(desk: WhatIfDesk, exchange: Exchange, name: string, guards: readonly string[]): void {
  const found = desk.scenario(name)
  if (found === undefined)
    exchange.sendFault(invalidRequest('No shipped scenario has this name.', 'scenario', 'unknown-url'), guards)
  else exchange.sendJson(200, JSON.stringify(found), guards)
}

async function runWhatIf(desk: WhatIfDesk, exchange: Exchange, guards: readonly string[]): Promise<void> {
  const body = await collectBody(exchange, BODY_BYTES_MAX)
  if (body.kind === 'gone') return
  const read: Checked<WhatIfBody> = body.kind === 'fault' ? body : andThen(readStorable(body.bytes), checkBody)
  if (read.kind === 'fault') return exchange.sendFault(read.fault, guards)
  const { res } = exchange
  const say = (line: object): void => {
    if (!res.destroyed) res.write(`${JSON.stringify(line)}\n`)
  }
  const begun = desk.begin(read.value, say)
  if (begun === undefined) {
    const message = 'Another comparison runs, or the server stops; try again when it has ended.'
    return exchange.sendFault(invalidRequest(message, null, 'invalid-value'), guards)
  }
  res.on('close', () => begun.stop())
  const head = ['content-type', 'application/x-ndjson', 'cache-control', 'no-store', 'x-accel-buffering', 'no']
  res.writeHead(200, [...head, ...guards, 'x-request-id', exchange.id])
  res.flushHeaders()
  say(await begun.end)
  res.end()
}
