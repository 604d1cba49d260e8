import type { Plan } from '../domain/plan.ts'
import type { NativeDialect, NativeText, Request } from '../domain/request.ts'
import { withoutBilling } from './messages-content.ts'
import { membersOf, memberText, spliceJson } from './splice-json.ts'
import { type SentSalt, saltChange } from './upstream-body.ts'

/**
 * The client's own body, for an engine that speaks the client's dialect. Changed are
 *
 *   model                    the engine's own name for it
 *   max_output_tokens, max_tokens   where the ladder or the operator bounds the answer
 *   store                    false: storing is ours, and no engine may keep what the tenant's policy forbids
 *   system                   without the line for Anthropic's billing, as in a translation
 *   spillway, priority       meant for us, and taken out
 *   cache_salt               that of the cache scope, as in a chat
 *
 * A plan that trims the conversation or adds passages speaks of the messages of a chat, so it needs the translation.
 */
const BOUNDS: Readonly<Record<NativeDialect, string>> = { responses: 'max_output_tokens', messages: 'max_tokens' }

/** Members beyond which a body is translated: looking for two of one name takes time. */
const MEMBERS_MAX = 256

/** Undefined: the engine has to be asked in chat's words. */
export function nativeBody(request: Request, plan: Plan, upstreamModel: string, salt?: SentSalt): string | undefined {
  const native = request.text?.native
  if (native === undefined || !isWhole(request, plan)) return undefined
  const { dialect, raw } = native
  const members = membersOf(raw)
  if (members === undefined || members.length > MEMBERS_MAX) return undefined
  // Of two members with one name an engine may take the other than was checked and counted here.
  if (new Set(members.map(({ name }) => name)).size < members.length) return undefined
  const changes = {
    model: JSON.stringify(upstreamModel),
    spillway: null,
    priority: null,
    ...saltChange(salt),
    [BOUNDS[dialect]]: boundOf(memberText(raw, BOUNDS[dialect], members), plan),
    ...(dialect === 'responses' ? { store: 'false', previous_response_id: null } : systemOf(native, members)),
  }
  return spliceJson(raw, changes, members)
}

function isWhole({ segments, retrieval }: Request, { keptSegments }: Plan): boolean {
  return retrieval === undefined && keptSegments.length === segments.length
}

/** A bound of the client that is within the plan stays as it is written. */
function boundOf(asked: string | undefined, { sentTokensMax, outputTokensMax }: Plan): string | undefined {
  const theirs = asked === undefined || asked === 'null' ? undefined : Number(asked)
  if (theirs === undefined) return sentTokensMax === undefined ? undefined : String(sentTokensMax)
  return theirs <= outputTokensMax ? undefined : String(outputTokensMax)
}

function systemOf({ raw }: NativeText, members: NonNullable<ReturnType<typeof membersOf>>): Record<string, string> {
  const text = memberText(raw, 'system', members)
  if (text === undefined) return {}
  const system = JSON.parse(text) as string | ReadonlyArray<{ readonly text?: unknown }> | null
  if (system === null) return {}
  if (typeof system === 'string') {
    const left = withoutBilling(system)
    return left === system ? {} : { system: JSON.stringify(left) }
  }
  const left = system.map((block) =>
    typeof block.text === 'string' ? { ...block, text: withoutBilling(block.text) } : block,
  )
  if (left.every(({ text: one }, i) => one === system[i]?.text)) return {}
  return { system: JSON.stringify(left.filter(({ text: one }) => one !== '')) }
}
