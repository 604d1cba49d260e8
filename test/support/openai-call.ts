import { HttpOpenAiBackend, type HttpOpenAiOptions } from '../../src/backends/http-openai.ts'
import { Cancellation } from '../../src/base/cancellation.ts'
import type { Delta } from '../../src/domain/delta.ts'
import { FULL_RUNG, type Plan } from '../../src/domain/plan.ts'
import type { Request } from '../../src/domain/request.ts'
import type { Ending } from '../../src/lifecycle/ports.ts'
import type { Behaviour, FakeUpstream } from './fake-upstream.ts'
import { makeRequest } from './requests.ts'

/** One call of the OpenAI backend to an engine that behaves as a test says: how it ended, and what it passed on. */
export interface CallSaid {
  readonly ending: Ending
  readonly deltas: readonly Delta[]
}

const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }

export async function callOpenAi(
  upstream: FakeUpstream,
  behaviour: Behaviour,
  options: Partial<HttpOpenAiOptions> = {},
  over: Partial<Request> = {},
  body: object = {},
  firstTokenBy?: number,
  cancellation: Cancellation = new Cancellation(),
): Promise<CallSaid> {
  upstream.next(behaviour)
  const backend = new HttpOpenAiBackend({ url: upstream.url, upstreamModel: 'theirs', ...options })
  const isStreamed = over.isStreamed ?? true
  const messages = [{ role: 'user', content: 'Hello?' }]
  const request = makeRequest({ text: { body: { model: 'm', messages, stream: isStreamed, ...body } }, ...over })
  const plan: Plan = {
    rung: FULL_RUNG,
    model: 'm',
    releaseId: 'm@1',
    segments: request.segments,
    keptSegments: [0],
    outputTokensMax: 50,
    estimate: { promptTokens: 20, cachedTokens: 0, outputTokens: 10, outputTokensHigh: 10, cost: 60, engineUs: 0 },
  }
  const deltas: Delta[] = []
  const sink = {
    write: (delta: Delta): undefined => {
      deltas.push(delta)
    },
  }
  const lease = { id: 1, ticketId: 'req_1', replica }
  const limit = firstTokenBy === undefined ? {} : { firstTokenBy }
  const ending = await backend.generate({ lease, request, plan, sink, cancellation, ...limit })
  await backend.close()
  return { ending, deltas }
}

export const frame = (body: object): string => `data: ${JSON.stringify(body)}\n\n`
export const word = (content: string, finish_reason: unknown = null): string =>
  frame({ choices: [{ index: 0, delta: { content }, finish_reason }] })
