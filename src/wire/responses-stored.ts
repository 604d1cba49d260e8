import type { ArchivedAnswer } from '../domain/archive.ts'
import type { ResponsesBody } from './responses-schema.ts'
import { tooComplex } from './scan-json.ts'
import { memberText } from './splice-json.ts'

/**
 * Stored responses: the items that are stored with one, and those that a later one goes on from. The id of an item has
 * the id of its response in it, so that an item that a client names is found without another table.
 */
export type WireJson = Readonly<Record<string, unknown>>

/** The items of this turn as `input_items` lists them: each with an id, messages with their parts. */
export function storedInput(input: ResponsesBody['input'], responseId: string): WireJson[] {
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : ((input ?? []) as readonly WireJson[])
  const core = responseId.slice(responseId.indexOf('_') + 1)
  const ids = new Set<unknown>()
  return items.map((item, n) => {
    const { id } = item
    // A list is read on from an id: one that stands twice would begin it anew.
    const isOwn = typeof id === 'string' && id !== '' && !ids.has(id)
    const own = isOwn ? id : `${prefixOf(item)}_${core}_in${n}`
    ids.add(own)
    return { ...withParts(item), id: own }
  })
}

const PREFIXES: Readonly<Record<string, string>> = {
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
}

const prefixOf = ({ type }: WireJson): string => (typeof type === 'string' ? (PREFIXES[type] ?? 'msg') : 'msg')

function withParts(item: WireJson): WireJson {
  const { type, role, content } = item
  if (type !== undefined && type !== 'message') return item
  const message = { ...item, type: 'message', status: item['status'] ?? 'completed' }
  if (typeof content !== 'string') return message
  const part = role === 'assistant' ? { type: 'output_text', annotations: [], logprobs: [] } : { type: 'input_text' }
  return { ...message, content: [{ ...part, text: content }] }
}

type StoredTexts = Pick<ArchivedAnswer, 'document' | 'input'>

/**
 * The conversation up to the last of these answers; undefined when it is more than a body may be. A client could have
 * sent the same items in `input`, and the same bounds hold: what is parsed at once must not stop the event loop.
 */
export function itemsOfChain(answers: readonly StoredTexts[], bytesMax: number): WireJson[] | undefined {
  const bytes = Buffer.from(`[${answers.map(itemsText).join(',')}]`)
  if (bytes.length > bytesMax || tooComplex(bytes) !== undefined) return undefined
  return (JSON.parse(bytes.toString('utf8')) as WireJson[][]).flat()
}

/** The lists of the items of a turn, asked and answered: the rest of the document repeats the tools and is not needed. */
const itemsText = ({ document, input }: StoredTexts): string => `${input},${memberText(document, 'output') ?? '[]'}`

export const inputOf = ({ input }: Pick<ArchivedAnswer, 'input'>): WireJson[] => JSON.parse(input) as WireJson[]

/** The metadata that counts stands beside the document. */
export const wireResponse = ({ document, metadata }: Pick<ArchivedAnswer, 'document' | 'metadata'>): WireJson => ({
  ...(JSON.parse(document) as WireJson),
  metadata,
})

/** The items that stand for stored ones: the id of each, by its place in the input. */
export function referencesIn(input: ResponsesBody['input']): Map<number, string> {
  const found = new Map<number, string>()
  if (!Array.isArray(input)) return found
  for (const [n, item] of (input as readonly WireJson[]).entries()) {
    const { type, role, id } = item
    const isReference = type === 'item_reference' || ((type ?? null) === null && role === undefined)
    if (isReference && typeof id === 'string') found.set(n, id)
  }
  return found
}

/** The id of the response that an item of ours belongs to; undefined for any other text. */
export function responseIdOf(itemId: string): string | undefined {
  const core = /^[a-z]{2,5}_([0-9a-z]{1,64})_(?:in)?\d{1,9}$/.exec(itemId)?.[1]
  return core === undefined ? undefined : `resp_${core}`
}
