import type { Static } from 'typebox'
import { Type } from '../base/schema.ts'
import type { ArchivedAnswer } from '../domain/archive.ts'
import { type Checked, makeCheck } from './check.ts'
import { invalidRequest } from './openai-error.ts'
import type { ChatBody } from './schemas.ts'

/** Stored chat completions in OpenAI's shapes. */

const METADATA_PAIRS_MAX = 16
const METADATA_KEY_MAX = 64
const METADATA_VALUE_MAX = 512

/** PostgreSQL's texts cannot contain NUL. */
const WITHOUT_NUL = '^[^\\u0000]*$'

export const MetadataSchema = Type.Record(
  Type.String({ maxLength: METADATA_KEY_MAX, pattern: WITHOUT_NUL }),
  Type.String({ maxLength: METADATA_VALUE_MAX, pattern: WITHOUT_NUL }),
  { maxProperties: METADATA_PAIRS_MAX, description: 'Up to 16 pairs of texts, by which stored answers can be listed.' },
)

export const MetadataBody = Type.Object({ metadata: Type.Union([MetadataSchema, Type.Null()]) })
export type MetadataBody = Static<typeof MetadataBody>

const checkPairs = makeCheck(MetadataBody)

/** The metadata of an answer or a change; absent is none. */
export function readPairs(metadata: unknown): Checked<ArchivedAnswer['metadata']> {
  const pairs = metadata === null || metadata === undefined ? {} : metadata
  if (
    typeof pairs === 'object' &&
    Object.keys(pairs).some((key) => key.length > METADATA_KEY_MAX || key.includes('\0'))
  ) {
    const message = `Invalid 'metadata': keys have at most ${METADATA_KEY_MAX} characters, and no U+0000.`
    return { kind: 'fault', fault: invalidRequest(message, 'metadata', 'invalid-value') }
  }
  const checked = checkPairs({ metadata: pairs })
  return checked.kind === 'fault' ? checked : { kind: 'ok', value: checked.value.metadata ?? {} }
}

/** What a stored completion says of its request beside the answer, as OpenAI's do. */
export function askedWith(body: ChatBody, requestId: string): Record<string, unknown> {
  const said = body as Readonly<Record<string, unknown>>
  const of = (name: string): unknown => said[name] ?? null
  return {
    request_id: requestId,
    tool_choice: of('tool_choice'),
    tools: of('tools'),
    seed: of('seed'),
    temperature: of('temperature'),
    top_p: of('top_p'),
    presence_penalty: of('presence_penalty'),
    frequency_penalty: of('frequency_penalty'),
    input_user: of('user'),
    response_format: of('response_format'),
  }
}

/** A page of them; unlike other lists of OpenAI's, an empty one has texts for its ends. */
export function wireStoredPage(rows: ReadonlyArray<Record<string, unknown>>, hasMore: boolean): object {
  const ends = { first_id: rows[0]?.['id'] ?? '', last_id: rows.at(-1)?.['id'] ?? '' }
  return { object: 'list', data: rows, ...ends, has_more: hasMore }
}

/** The metadata that counts stands beside the document. */
export function wireCompletion({ document, metadata }: Pick<ArchivedAnswer, 'document' | 'metadata'>) {
  return { ...(JSON.parse(document) as Record<string, unknown>), metadata }
}

/** Messages of a stored completion have ids made of its own and their number. */
export function wireMessages({ id, input }: Pick<ArchivedAnswer, 'id' | 'input'>): Record<string, unknown>[] {
  const messages = JSON.parse(input) as Record<string, unknown>[]
  return messages.map((message, n) => {
    const { content = null } = message
    const parts = Array.isArray(content) ? content : null
    return {
      name: null,
      refusal: null,
      ...message,
      id: `${id}-${n}`,
      content: parts === null ? content : null,
      content_parts: parts,
    }
  })
}
