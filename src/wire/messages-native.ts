import type { Usage } from '../domain/delta.ts'
import { eventText, type NativeWords } from './native-stream.ts'
import { messagesUsageText } from './native-usage.ts'
import { memberText, spliceJson } from './splice-json.ts'

/** The events of an engine that speaks Messages itself. */
export class NativeMessages implements NativeWords {
  readonly dialect = 'messages'
  readonly objectIn = 'message'
  /** Blocks that have begun and not ended: engines have one at a time. */
  readonly #open = new Set<number>()
  #startUsage: unknown

  isEnd(type: string): boolean {
    return type === 'message_delta'
  }

  note(type: string, json: string): void {
    if (type === 'content_block_start') this.#open.add(indexIn(json))
    else if (type === 'content_block_stop') this.#open.delete(indexIn(json))
    else if (type === 'message_start') this.#startUsage = startUsageIn(json)
  }

  closing(json: string, usage: Usage): string {
    return spliceJson(json, { usage: messagesUsageText(memberText(json, 'usage'), this.#startUsage, usage) })
  }

  document(json: string, usage: Usage): string {
    return spliceJson(json, { usage: messagesUsageText(memberText(json, 'usage'), undefined, usage) })
  }

  cut(usage: Usage): string {
    let events = ''
    for (const index of this.#open)
      events += eventText('content_block_stop', `{"type":"content_block_stop","index":${index}}`)
    const delta = '{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{}}'
    return events + eventText('message_delta', this.closing(delta, usage)) + eventText('message_stop', STOP)
  }

  broken(error: string): string {
    return eventText('error', error)
  }
}

const STOP = '{"type":"message_stop"}'

const indexIn = (json: string): number => Number(memberText(json, 'index') ?? 0)

const startUsageIn = (json: string): unknown =>
  JSON.parse(memberText(memberText(json, 'message') ?? '{}', 'usage') ?? '{}') as unknown
