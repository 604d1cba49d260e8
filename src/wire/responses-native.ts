import type { Usage } from '../domain/delta.ts'
import { eventText, type NativeWords, type Own } from './native-stream.ts'
import { responsesUsageText } from './native-usage.ts'
import { memberText, spliceJson } from './splice-json.ts'

/** The events of an engine that speaks Responses itself. */
export class NativeResponses implements NativeWords {
  readonly dialect = 'responses'
  readonly objectIn = 'response'
  /** The response object as it was told last. */
  #response = '{"object":"response","output":[]}'
  #sequence = -1
  /** Items in the order of the output: as they ended, or as they began. At most one for each event of a bounded stream. */
  readonly #items = new Map<string, string>()
  /** Text of the message that is being written. */
  #text = ''

  isEnd(type: string): boolean {
    return type === 'response.completed' || type === 'response.incomplete'
  }

  note(type: string, json: string): void {
    const sequence = Number(memberText(json, 'sequence_number'))
    if (Number.isInteger(sequence)) this.#sequence = sequence
    if (type === 'response.output_text.delta') this.#text += JSON.parse(memberText(json, 'delta') ?? '""') as string
    else if (type === 'response.output_item.added' || type === 'response.output_item.done') {
      this.#items.set(memberText(json, 'output_index') ?? '', memberText(json, 'item') ?? '{}')
      this.#text = ''
    } else this.#response = memberText(json, 'response') ?? this.#response
  }

  closing(json: string, usage: Usage): string {
    const response = memberText(json, 'response')
    return response === undefined ? json : spliceJson(json, { response: this.document(response, usage) })
  }

  document(json: string, usage: Usage): string {
    return spliceJson(json, { usage: responsesUsageText(memberText(json, 'usage'), usage) })
  }

  cut(usage: Usage, own: Own): string {
    const because = { status: '"incomplete"', incomplete_details: '{"reason":"max_output_tokens"}' }
    return this.#told('response.incomplete', this.document(own(this.#ended(because)), usage))
  }

  /** As OpenAI does: `error`, which SDKs throw, and the response as it failed. */
  broken(document: string, own: Own): string {
    const { error } = JSON.parse(document) as { error: Readonly<Record<string, unknown>> }
    const { message, code, param } = error
    const told = { type: 'error', code, message, param, error, sequence_number: ++this.#sequence }
    const because = { status: '"failed"', error: JSON.stringify({ code: 'server_error', message }) }
    return eventText('error', JSON.stringify(told)) + this.#told('response.failed', own(this.#ended(because)))
  }

  #ended(because: Readonly<Record<string, string>>): string {
    const items = [...this.#items.values()].map((item) =>
      memberText(item, 'status') === '"in_progress"' ? spliceJson(item, this.#unfinished(item)) : item,
    )
    return spliceJson(this.#response, { ...because, output: `[${items.join(',')}]` })
  }

  #unfinished(item: string): Readonly<Record<string, string>> {
    const isMessage = memberText(item, 'type') === '"message"'
    const content = JSON.stringify([{ type: 'output_text', text: this.#text, annotations: [] }])
    return { status: '"incomplete"', ...(isMessage && { content }) }
  }

  #told(type: string, response: string): string {
    return eventText(type, `{"type":"${type}","response":${response},"sequence_number":${++this.#sequence}}`)
  }
}
