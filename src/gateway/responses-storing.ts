import { ArchiveUnavailable } from '../domain/archive.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { Archive } from '../lifecycle/archive-ports.ts'
import type { Checked } from '../wire/check.ts'
import type { AnswerIdentity, QueuedResponse, Wording } from '../wire/dialect.ts'
import { invalidRequest, type WireFault } from '../wire/openai-error.ts'
import { responsesWording } from '../wire/responses-dialect.ts'
import type { ResponsesBody } from '../wire/responses-schema.ts'
import { itemsOfChain, referencesIn, responseIdOf, storedInput } from '../wire/responses-stored.ts'
import { readResponses } from '../wire/responses-to-chat.ts'
import { memberText } from '../wire/splice-json.ts'
import { readPairs } from '../wire/stored-completions.ts'
import { archiveAway } from './archive-away.ts'
import type { ToldRefusal } from './error-table.ts'
import type { FoundInBody } from './screen-body.ts'

/**
 * Stored responses on their way in: what a body goes on from is read from the archive, and what is asked to be stored is
 * handed to it when the answer has ended. Responses are stored unless the client says otherwise; where the tenant may
 * not store, or the archive cannot, the answer is served all the same and says `store: false`.
 */
export type ReadWording = Checked<Wording> | { readonly kind: 'refusal'; readonly refusal: ToldRefusal }

export interface ResponseStore {
  readonly archive: Archive
  /** What is read from the archive for one request is at most as large as a body may be. */
  readonly bodyBytesMax: number
}

/** Who sends the body: a client, a line of a batch, or the job of a response that runs in the background. */
export type ResponseSender = 'client' | 'batch' | 'background'

/** `found`: what is stored is screened as the body was, because it may be older than the tenant's policy. */
export async function readStoredResponse(
  store: ResponseStore,
  tenant: Tenant,
  bytes: Buffer,
  found?: FoundInBody,
  sender: ResponseSender = 'client',
): Promise<ReadWording> {
  const { archive } = store
  const checked = readResponses(bytes)
  if (checked.kind === 'fault') return checked
  const { body: asked, raw } = checked.value
  const metadata = readPairs(asked.metadata)
  if (metadata.kind === 'fault') return metadata
  let earlier: readonly object[] | undefined
  let body: ResponsesBody
  try {
    const conversation = await conversationOf(store, tenant.id, asked)
    if (conversation.kind === 'fault') return conversation
    earlier = await rewritten(conversation.value, found)
    const resolved = await withItems(store, tenant.id, asked)
    if (resolved.kind === 'fault') return resolved
    body = resolved.value === asked ? asked : await rewritten(resolved.value, found)
  } catch (error) {
    if (error instanceof ArchiveUnavailable) return { kind: 'refusal', refusal: archiveAway(error) }
    throw error
  }
  if (body.background === true)
    return inBackground(store, tenant, { body, earlier, sender, bytes: bytes.length, metadata: metadata.value })
  const unstored = { earlier, isStored: false, ...(body === asked && { raw }) }
  if (body.store === false) return responsesWording(body, unstored)
  const whyNot = archive.whyNot(tenant, bytes.length)
  const headers = ['x-spillway-stored', String(whyNot === undefined)]
  if (whyNot !== undefined) {
    headers.push('x-spillway-not-stored', whyNot)
    return responsesWording(body, { ...unstored, headers })
  }
  return responsesWording(body, {
    earlier,
    isStored: true,
    headers,
    keep: (identity, document) => archive.keep(tenant, draftOf(body, metadata.value, identity, document)),
  })
}

const draftOf = (
  body: ResponsesBody,
  metadata: Readonly<Record<string, string>>,
  { id, model, createdAtS }: AnswerIdentity,
  document: string,
): QueuedResponse => ({
  id,
  kind: 'response',
  createdAtMs: createdAtS * 1_000,
  model,
  metadata,
  previousId: body.previous_response_id ?? undefined,
  document,
  input: JSON.stringify(storedInput(body.input, id)),
})

interface BackgroundAsk {
  readonly body: ResponsesBody
  readonly earlier: readonly object[] | undefined
  readonly sender: ResponseSender
  readonly bytes: number
  readonly metadata: Readonly<Record<string, string>>
}

/** What nobody waits for has to be stored: a response that cannot be is refused, not served. */
function inBackground(
  { archive }: ResponseStore,
  tenant: Tenant,
  { body, earlier, sender, bytes, metadata }: BackgroundAsk,
): ReadWording {
  const refused = (param: string, message: string): ReadWording => ({
    kind: 'fault',
    fault: invalidRequest(message, param, 'unsupported-parameter'),
  })
  if (sender === 'batch') return refused('background', "Lines of a batch cannot be 'background': a batch is.")
  if (body.stream === true)
    return refused(
      'stream',
      "Unsupported 'stream' with 'background': leave it out, and ask for the response by its id.",
    )
  if (body.store === false)
    return refused(
      'store',
      "Invalid 'store': a response in the background is stored. Leave out 'store' or 'background'.",
    )
  const whyNot = archive.whyNot(tenant, bytes)
  if (whyNot === 'not-allowed')
    return refused(
      'background',
      "Unsupported 'background': you may not store responses here, and nobody could read this one. Leave it out, and wait for the answer.",
    )
  if (whyNot === 'too-large')
    return refused('background', "Unsupported 'background': this request is larger than one that is stored may be.")
  const terms = { earlier, isStored: true, isBackground: true }
  if (sender === 'background') return responsesWording(body, terms)
  if (whyNot !== undefined)
    return { kind: 'refusal', refusal: archiveAway(new ArchiveUnavailable('Responses cannot be stored now.')) }
  return responsesWording(body, {
    ...terms,
    queue: (identity, document) => draftOf(body, metadata, identity, document),
  })
}

async function rewritten<T>(value: T, found: FoundInBody | undefined): Promise<T> {
  if (found === undefined || value === undefined) return value
  const json = JSON.stringify(value)
  const text = await found.rewriteJson(json)
  return text === json ? value : (JSON.parse(text) as T)
}

/** The items before this turn; undefined when the body goes on from nothing. */
async function conversationOf(
  { archive, bodyBytesMax }: ResponseStore,
  tenantId: string,
  { previous_response_id: id }: ResponsesBody,
): Promise<Checked<readonly object[] | undefined>> {
  if (typeof id !== 'string') return { kind: 'ok', value: undefined }
  const chain = await archive.chain(tenantId, 'response', id)
  // Not known: the translation says so, in the words that it has where nothing is stored.
  if (chain === undefined) return { kind: 'ok', value: undefined }
  const last = chain.answers.at(-1)
  if (last !== undefined && memberText(last.document, 'status') === '"queued"')
    return {
      kind: 'fault',
      fault: previousFault(`Previous response '${id}' runs in the background and has not ended.`),
    }
  const items = chain.state === 'whole' ? itemsOfChain(chain.answers, bodyBytesMax) : undefined
  if (items !== undefined) return { kind: 'ok', value: items }
  const because =
    chain.state === 'broken'
      ? 'a response that it goes on from is not stored any more'
      : 'the conversation before it has more turns or text than can be gone on from'
  return { kind: 'fault', fault: previousFault(`Previous response '${id}' cannot be gone on from: ${because}.`) }
}

const previousFault = (message: string): WireFault =>
  invalidRequest(
    `${message} Send the conversation in \`input\`.`,
    'previous_response_id',
    'previous-response-not-found',
  )

/** Responses that the items of one body may be of: each costs a reading of the store. */
const REFERRED_RESPONSES_MAX = 64

/** The body with stored items in place of their names. Names that nobody knows are left for the translation to refuse. */
async function withItems(
  { archive, bodyBytesMax }: ResponseStore,
  tenantId: string,
  body: ResponsesBody,
): Promise<Checked<ResponsesBody>> {
  const references = referencesIn(body.input)
  if (references.size === 0) return { kind: 'ok', value: body }
  const responseIds = new Set([...references.values()].flatMap((id) => responseIdOf(id) ?? []))
  if (responseIds.size > REFERRED_RESPONSES_MAX) return tooManyItems()
  const items = new Map<unknown, object>()
  let bytesLeft = bodyBytesMax
  for (const responseId of responseIds) {
    const answer = await archive.find(tenantId, 'response', responseId)
    if (answer === undefined) continue
    const found = itemsOfChain([answer], bytesLeft)
    if (found === undefined) return tooManyItems()
    bytesLeft -= answer.input.length + answer.document.length
    for (const item of found) items.set(item['id'], item)
  }
  const input = (body.input as readonly object[]).map((item, n) => items.get(references.get(n)) ?? item)
  return { kind: 'ok', value: { ...body, input } }
}

const tooManyItems = (): Checked<never> => ({
  kind: 'fault',
  fault: invalidRequest(
    `Invalid 'input': its items refer to more than ${REFERRED_RESPONSES_MAX} stored responses, or to more text than a body may have. Go on with \`previous_response_id\`, or send the items themselves.`,
    'input',
    'invalid-value',
  ),
})
