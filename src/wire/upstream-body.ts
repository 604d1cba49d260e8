import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import { withPassages } from './passage-text.ts'
import { elementsOf, type JsonMember, membersOf, memberText, spliceJson } from './splice-json.ts'

/**
 * The client's body as planned, for an engine that speaks OpenAI's words. What the plan does not change is sent as the
 * client wrote it, known or unknown, down to the digits of its numbers. Changed are
 *
 *   model                   the engine's own name for it
 *   max_tokens              only where the ladder or the operator bounds the answer; under the name that the engine takes
 *   messages                where the plan trims them or has passages
 *   stream_options          a stream is asked for its usage, whatever else the client asks for
 *   spillway, priority      meant for us, and taken out
 *   cache_salt              that of the cache scope; a client's own is never sent, because it could name another tenant's
 */

/** What an engine accepts. */
export interface UpstreamStyle {
  /** Name of a chat's output limit; undefined keeps the client's. OpenAI's newer models accept only the second. */
  readonly outputBound?: 'max_tokens' | 'max_completion_tokens'
  /** Whether a stream may ask for usage: older versions of Azure refuse that. */
  readonly asksUsage?: boolean
  /** Whether a stream is asked for its usage in every frame: vLLM and SGLang take that, strict servers refuse it. */
  readonly asksRunningUsage?: boolean
}

/** The salt of the engine's prefix cache for this request; null sends none, undefined leaves what the client sent. */
export type SentSalt = string | null | undefined

type Body = Readonly<Record<string, unknown>>
type Changes = Record<string, string | null>

export function upstreamBody(
  request: Request,
  plan: Plan,
  upstreamModel: string,
  style: UpstreamStyle = {},
  salt?: SentSalt,
): string {
  const body: Body = request.text?.body ?? {}
  const { json, members } = textOf(request)
  const changes = withoutOurs(upstreamModel, salt)
  changeBound(changes, request, body, plan, style)
  const messages = messagesOf(json, members, body, plan)
  if (messages !== undefined) changes['messages'] = messages
  if (request.isStreamed) changes['stream_options'] = streamOptionsOf(json, members, style)
  return spliceJson(json, changes, members)
}

/** The client's texts, with the engine's own name for the model. */
export function embeddingBody(request: Request, upstreamModel: string, salt?: SentSalt): string {
  const { json, members } = textOf(request)
  return spliceJson(json, withoutOurs(upstreamModel, salt), members)
}

const withoutOurs = (upstreamModel: string, salt: SentSalt): Changes => ({
  spillway: null,
  priority: null,
  model: JSON.stringify(upstreamModel),
  ...saltChange(salt),
})

export const saltChange = (salt: SentSalt): { cache_salt?: string | null } =>
  salt === undefined ? {} : { cache_salt: salt === null ? null : JSON.stringify(salt) }

/**
 * The body as the client wrote it. A body with two members of one name is written anew from what was parsed: engines may
 * take the other of the two than was checked and counted here.
 */
function textOf({ text }: Request): { readonly json: string; readonly members: JsonMember[] } {
  const json = text?.raw ?? JSON.stringify(text?.body ?? {})
  const members = membersOf(json) ?? []
  if (!members.some(({ name }, i) => hasBefore(members, i, name))) return { json, members }
  const again = JSON.stringify(text?.body ?? {})
  return { json: again, members: membersOf(again) ?? [] }
}

/** Bodies have a dozen members: looking back is quicker than a set. */
function hasBefore(members: readonly JsonMember[], index: number, name: string): boolean {
  if (index > MEMBERS_LOOKED_BACK_MAX) return true
  for (let i = 0; i < index; i++) if (members[i]?.name === name) return true
  return false
}

/** A body with more members is written anew, too: looking back through thousands would take long. */
const MEMBERS_LOOKED_BACK_MAX = 256

function changeBound(
  changes: Changes,
  { kind }: Request,
  body: Body,
  plan: Plan,
  { outputBound }: UpstreamStyle,
): void {
  const theirs = isSet(body['max_completion_tokens']) ? 'max_completion_tokens' : 'max_tokens'
  const asked = body[theirs]
  // A bound of the client that is within the plan is its own business.
  const bound = typeof asked !== 'number' ? plan.sentTokensMax : Math.min(asked, plan.outputTokensMax)
  const name = kind === 'chat' ? (outputBound ?? theirs) : theirs
  const isKept = name === theirs && bound === asked
  if (!isKept || name === outputBound) changes[otherOf(name)] = null
  if (!isKept && bound !== undefined) changes[name] = String(bound)
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null
const otherOf = (name: string): string => (name === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens')

/** Undefined: they stay as they are. */
function messagesOf(
  json: string,
  members: JsonMember[],
  body: Body,
  { keptSegments, passages }: Plan,
): string | undefined {
  const { messages } = body
  if (!Array.isArray(messages)) return undefined
  const isTrimmed = keptSegments.length < messages.length
  if (passages !== undefined && passages.length > 0) {
    const kept = isTrimmed ? keptSegments.map((index) => messages[index] as { role: string }) : messages
    return JSON.stringify(withPassages(kept as Array<{ role: string }>, passages))
  }
  if (!isTrimmed) return undefined
  const texts = elementsOf(memberText(json, 'messages', members) ?? '[]') ?? []
  return `[${keptSegments.map((index) => texts[index]).join(',')}]`
}

function streamOptionsOf(json: string, members: JsonMember[], style: UpstreamStyle): string | null {
  if (style.asksUsage === false) return null
  const asked = memberText(json, 'stream_options', members)
  const options = asked?.startsWith('{') === true ? asked : '{}'
  const running = style.asksRunningUsage === true ? { continuous_usage_stats: 'true' } : {}
  return spliceJson(options, { include_usage: 'true', ...running })
}
