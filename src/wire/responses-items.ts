/**
 * Output items of a response, while they are written: a message with its parts, reasoning, a call. Each knows its own JSON
 * and the names of its events; what begins and ends when is the business of `responses-output.ts`.
 */
export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

interface ItemPlace {
  readonly id: string
  readonly outputIndex: number
}

/** What every event about an item says of it. */
const placeOf = ({ id, outputIndex }: ItemPlace): string => `"item_id":"${id}","output_index":${outputIndex}`

/** The events of one text that grows: the name of each, and the fields beside its own. */
export interface TextEvents {
  /** The event of a delta up to the text itself. */
  readonly deltaHead: string
  /** What comes after the text, up to the sequence number. */
  readonly deltaTail: string
  readonly doneHead: string
  readonly doneTail: () => string
}

const eventHead = (type: string): string => `event: ${type}\ndata: {"type":"${type}",`

function eventsOf(
  type: string,
  place: string,
  doneField: string,
  doneTail: TextEvents['doneTail'] = () => '',
): TextEvents {
  return {
    deltaHead: `${eventHead(`${type}.delta`)}${place},"delta":`,
    deltaTail: type === 'response.output_text' ? ',"logprobs":' : '',
    doneHead: `${eventHead(`${type}.done`)}${place},"${doneField}":`,
    doneTail,
  }
}

export type PartKind = 'output_text' | 'refusal'

/** A part of a message: text, or the model's refusal. */
export class MessagePart {
  readonly kind: PartKind
  readonly place: string
  readonly events: TextEvents
  text = ''
  readonly logprobs: unknown[] = []

  constructor(kind: PartKind, item: ItemPlace, contentIndex: number) {
    this.kind = kind
    this.place = `${placeOf(item)},"content_index":${contentIndex}`
    this.events =
      kind === 'output_text'
        ? eventsOf('response.output_text', this.place, 'text', () => `,"logprobs":${JSON.stringify(this.logprobs)}`)
        : eventsOf('response.refusal', this.place, 'refusal')
  }

  get json(): string {
    if (this.kind === 'refusal') return `{"type":"refusal","refusal":${JSON.stringify(this.text)}}`
    return `{"type":"output_text","annotations":[],"logprobs":${JSON.stringify(this.logprobs)},"text":${JSON.stringify(this.text)}}`
  }
}

export class MessageItem {
  readonly kind = 'message'
  readonly id: string
  readonly outputIndex: number
  readonly parts: MessagePart[] = []
  status: ItemStatus = 'in_progress'

  constructor(place: ItemPlace) {
    this.id = place.id
    this.outputIndex = place.outputIndex
  }

  get part(): MessagePart | undefined {
    return this.parts.at(-1)
  }

  addPart(kind: PartKind): MessagePart {
    const part = new MessagePart(kind, this, this.parts.length)
    this.parts.push(part)
    return part
  }

  get json(): string {
    const parts = this.parts.map(({ json }) => json).join(',')
    return `{"id":"${this.id}","type":"message","status":"${this.status}","role":"assistant","content":[${parts}]}`
  }
}

const SEAL = 'spillway-1.'

/**
 * Reasoning in the form in which clients that keep nothing on the server bring it back. It is not secret: the same item
 * shows the text. Clients send it only if it is there.
 */
export const sealReasoning = (text: string): string => SEAL + Buffer.from(text).toString('base64url')

/** The text of a seal of ours; nothing of another server's. */
export const unsealReasoning = (sealed: unknown): string =>
  typeof sealed === 'string' && sealed.startsWith(SEAL)
    ? Buffer.from(sealed.slice(SEAL.length), 'base64url').toString('utf8')
    : ''

/** What the engine thought: as its text, or as a summary where the client asked for one. */
export class ReasoningItem {
  readonly kind = 'reasoning'
  readonly id: string
  readonly outputIndex: number
  readonly isSummary: boolean
  readonly isSealed: boolean
  readonly place: string
  readonly events: TextEvents
  text = ''
  hasPart = false
  status: ItemStatus = 'in_progress'

  constructor(place: ItemPlace, { isSummary, isSealed }: Pick<ReasoningItem, 'isSummary' | 'isSealed'>) {
    this.id = place.id
    this.outputIndex = place.outputIndex
    this.isSummary = isSummary
    this.isSealed = isSealed
    this.place = `${placeOf(this)},"${isSummary ? 'summary_index' : 'content_index'}":0`
    this.events = eventsOf(
      isSummary ? 'response.reasoning_summary_text' : 'response.reasoning_text',
      this.place,
      'text',
    )
  }

  get part(): string {
    return `{"type":"${this.isSummary ? 'summary_text' : 'reasoning_text'}","text":${JSON.stringify(this.text)}}`
  }

  get json(): string {
    const part = this.hasPart ? this.part : ''
    const texts = this.isSummary ? `"summary":[${part}]` : `"summary":[],"content":[${part}]`
    const sealed = this.isSealed && this.status !== 'in_progress' ? `"${sealReasoning(this.text)}"` : 'null'
    return `{"id":"${this.id}","type":"reasoning",${texts},"encrypted_content":${sealed},"status":"${this.status}"}`
  }
}

/** A call of a function, or of a tool that takes free text. */
export class CallItem {
  readonly kind: 'function_call' | 'custom_tool_call'
  readonly id: string
  readonly outputIndex: number
  /** By which the client's output is matched: the engine's own, unless it gave none or the same twice. */
  readonly callId: string
  readonly engineId: string
  readonly events: TextEvents
  name: string
  text = ''
  status: ItemStatus = 'in_progress'

  constructor(place: ItemPlace, call: Pick<CallItem, 'kind' | 'callId' | 'engineId' | 'name'>) {
    const { kind, callId, engineId, name } = call
    this.kind = kind
    this.engineId = engineId
    this.id = place.id
    this.outputIndex = place.outputIndex
    this.callId = callId
    this.name = name
    this.events =
      kind === 'function_call'
        ? eventsOf(
            'response.function_call_arguments',
            placeOf(this),
            'arguments',
            () => `,"name":${JSON.stringify(this.name)}`,
          )
        : eventsOf('response.custom_tool_call_input', placeOf(this), 'input')
  }

  get json(): string {
    const said = this.kind === 'function_call' ? 'arguments' : 'input'
    return (
      `{"id":"${this.id}","type":"${this.kind}","status":"${this.status}","call_id":${JSON.stringify(this.callId)},` +
      `"name":${JSON.stringify(this.name)},"${said}":${JSON.stringify(this.text)}}`
    )
  }
}

export type OutputItem = MessageItem | ReasoningItem | CallItem
