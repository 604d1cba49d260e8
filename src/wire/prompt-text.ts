import type { Segment } from '../domain/request.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'

/** The text of each segment of a prompt, for counting its tokens and for answering it. */
export interface SegmentText {
  readonly role: Segment['role']
  readonly text: string
  /** Tokens without text: images and the like, and prompts sent as token ids. */
  readonly otherTokens: number
}

/** Cost of an image of ordinary size for a vision model, about; the engine's own count corrects it later. */
const TOKENS_PER_ATTACHMENT = 800

const ROLES: Readonly<Record<string, Segment['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  function: 'tool',
}

export function chatTexts(body: Pick<ChatBody, 'messages'>): SegmentText[] {
  return body.messages.map((message) => {
    const role = ROLES[message.role] ?? 'user'
    if (typeof message.content === 'string') return { role, text: message.content, otherTokens: 0 }
    if (!Array.isArray(message.content)) return { role, text: '', otherTokens: 0 }
    let text = ''
    let attachments = 0
    for (const part of message.content as ReadonlyArray<{ type: string; text?: unknown }>) {
      if (typeof part.text === 'string') text += part.text
      else attachments++
    }
    return { role, text, otherTokens: attachments * TOKENS_PER_ATTACHMENT }
  })
}

/** One segment per prompt: a list of prompts is answered as that many choices. */
export function completionTexts(prompt: CompletionBody['prompt']): SegmentText[] {
  if (typeof prompt === 'string') return [{ role: 'user', text: prompt, otherTokens: 0 }]
  if (typeof prompt[0] === 'number') return [{ role: 'user', text: '', otherTokens: prompt.length }]
  return (prompt as ReadonlyArray<string | readonly number[]>).map((one) =>
    typeof one === 'string'
      ? { role: 'user' as const, text: one, otherTokens: 0 }
      : { role: 'user' as const, text: '', otherTokens: one.length },
  )
}
