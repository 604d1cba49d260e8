import { promptTokensOf, type Request, type RequestKind } from '../domain/request.ts'
import { invalidRequest } from '../wire/openai-error.ts'
import type { PromptCounter, Read, ReadRequest, RequestRules } from './to-request.ts'

/**
 * How long is this prompt, if that matters? A request comes with estimated tokens. Where they are near a bound, the
 * prompt is counted by the model's tokenizer before the request is served, so that no client is refused for good on a
 * guess. Where there is no tokenizer for the model, or it does not answer in time, the request goes on as estimated, and
 * the engine decides (`policy/planning/size-doubt.ts` says which bounds).
 *
 * The operator's longest prompt (`limits.promptTokensMax`) is checked here, on the count if there is one. Without one it
 * holds for the estimate: the operator's bound has no engine behind it that could decide, and the raw estimate depends on
 * nothing but this prompt.
 *
 * The answer comes at once for nearly every request, and as a promise only where the tokens are counted.
 */
export function withTrueSize(read: Read, rules: RequestRules): Read | Promise<Read> {
  if (read.kind === 'fault') return read
  const { request } = read
  const { counter, promptTokensMax = Number.POSITIVE_INFINITY } = rules
  const isInDoubt =
    request.isEstimated === true &&
    counter !== undefined &&
    (counter.isInDoubt(request) || longestOf(request) > promptTokensMax) &&
    counter.knows(request.model)
  return isInDoubt ? counted(read, counter, rules) : bounded(read, rules)
}

/** The size of a prompt that is only asked for its size: counted where that is possible, else estimated. */
export async function promptSizeOf(
  read: ReadRequest,
  rules: RequestRules,
): Promise<{ readonly tokens: number; readonly isEstimated: boolean }> {
  const { counter } = rules
  const { request } = read
  const canCount = request.isEstimated === true && counter?.knows(request.model) === true
  const sized = canCount ? await withCounts(read, counter, rules) : read
  return { tokens: promptTokensOf(sized.request), isEstimated: sized.request.isEstimated === true }
}

async function counted(read: ReadRequest, counter: PromptCounter, rules: RequestRules): Promise<Read> {
  return bounded(await withCounts(read, counter, rules), rules)
}

/** The same with true counts; as it is, where they are not known in time. */
async function withCounts(read: ReadRequest, counter: PromptCounter, rules: RequestRules): Promise<ReadRequest> {
  const { request, countable } = read
  const { contextTokensMax = Number.POSITIVE_INFINITY } = rules.models.resolve(request.model)?.model ?? {}
  // Rows that are answered each by itself have a window each.
  const windows = request.kind === 'chat' ? 1 : request.segments.length
  const question = { tenantId: request.tenant.id, texts: countable.texts(), tokensMax: windows * contextTokensMax }
  const found = await counter.count(question)
  return found === undefined ? read : { ...read, request: countable.withCounts(found.counts) }
}

function bounded(read: ReadRequest, { promptTokensMax = Number.POSITIVE_INFINITY }: RequestRules): Read {
  const { request } = read
  const longest = longestOf(request)
  if (longest <= promptTokensMax) return read
  const what = isTogether(request) ? 'The prompt' : 'One input'
  const about = request.isEstimated === true ? 'about ' : ''
  const message = `${what} has ${about}${longest} tokens; at most ${promptTokensMax} are allowed here.`
  return { kind: 'fault', fault: invalidRequest(message, PARAMS[request.kind], 'context-length-exceeded') }
}

const PARAMS: Readonly<Record<RequestKind, string>> = {
  chat: 'messages',
  completion: 'prompt',
  embedding: 'input',
  tensors: 'inputs',
  transit: 'model',
}

const isTogether = ({ kind }: Request): boolean => kind === 'chat' || kind === 'completion'

function longestOf(request: Request): number {
  if (isTogether(request)) return promptTokensOf(request)
  return request.segments.reduce((most, { tokens }) => Math.max(most, tokens), 0)
}
