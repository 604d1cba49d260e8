import type { MessagesBlock, MessagesTurn } from './messages-schema.ts'
import { type FaultCode, invalidRequest, type WireFault } from './openai-error.ts'
import type { ChatBody } from './schemas.ts'

/**
 * Turns of Anthropic's Messages → messages of a chat. What differs: a tool's result is a block of a user's turn there and
 * a message of its own here; thinking is a block there and a field of the assistant's message here; and only a user's
 * message may show pictures here, so those of a tool's result are shown right after it.
 *
 * The first thing that cannot be said in a chat is kept as `fault`; translation then goes on, because its result is not
 * used.
 */
type ChatMessage = ChatBody['messages'][number]

/** A part of a chat message: text, a picture or a file. */
type Part = Readonly<Record<string, unknown>> & { readonly type: string }

/**
 * A thinking block of ours has the name of the engine's field in its signature, so that it is given back in the same
 * field. Thinking of other origin cannot be read by the engines here and is left out.
 */
export const SIGNATURES = {
  reasoning_content: 'spillway.reasoning_content',
  reasoning: 'spillway.reasoning',
} as const

export type ReasoningField = keyof typeof SIGNATURES

export class ContentTranslation {
  readonly messages: ChatMessage[] = []
  fault: WireFault | undefined
  /** Where in the body the translation is. */
  #list = 'system'
  #turn = -1
  #block = 0
  #isAnswered = false

  /**
   * System prompts up to the first answer become one, at the head: Claude Code sends a second one behind the user's first
   * turn, and many chat templates take a system message nowhere but first. The head stays the same from turn to turn, so
   * that it is found in a prefix cache. Later ones stay where they are.
   */
  addSystem(system: string | readonly MessagesBlock[]): void {
    const text = typeof system === 'string' ? withoutBilling(system) : this.#joined(system)
    if (text === '') return
    const head = this.messages[0]
    if (this.#isAnswered) this.messages.push({ role: 'system', content: text })
    else if (head?.role === 'system')
      this.messages[0] = { role: 'system', content: `${head.content as string}\n${text}` }
    else this.messages.unshift({ role: 'system', content: text })
  }

  addTurns(turns: readonly MessagesTurn[]): void {
    this.#list = 'messages'
    for (const { role, content } of turns) {
      this.#turn++
      if (role === 'assistant') this.#isAnswered = true
      if (role === 'system') this.addSystem(content as string | MessagesBlock[])
      else if (typeof content === 'string') this.messages.push({ role, content })
      else if (role === 'user') this.#addUser(content as MessagesBlock[])
      else this.#addAssistant(content as MessagesBlock[])
    }
  }

  refuse(message: string, param: string, code: FaultCode = 'unsupported-parameter'): void {
    this.fault ??= invalidRequest(`Invalid '${param}': ${message}.`, param, code)
  }

  /** One text of blocks that may hold nothing else: a system prompt. */
  #joined(blocks: readonly MessagesBlock[]): string {
    const texts: string[] = []
    for (let i = 0; i < blocks.length; i++) {
      this.#block = i
      const block = blocks[i] as MessagesBlock
      if (block.type !== 'text') this.#refuseBlock(`a system prompt is text, not '${shown(block.type)}'`)
      else texts.push(withoutBilling(this.#string(block, 'text')))
    }
    return texts.filter((text) => text !== '').join('\n')
  }

  #addUser(blocks: readonly MessagesBlock[]): void {
    const parts: Part[] = []
    const pictures: Part[] = []
    for (let i = 0; i < blocks.length; i++) {
      this.#block = i
      const block = blocks[i] as MessagesBlock
      if (block.type === 'tool_result') this.#addToolResult(block, pictures)
      else this.#addPart(block, parts)
    }
    const all = pictures.length === 0 ? parts : [...pictures, ...parts]
    if (all.length > 0 || blocks.length === 0) this.messages.push({ role: 'user', content: contentOf(all) })
  }

  #addToolResult(block: MessagesBlock, pictures: Part[]): void {
    const id = this.#string(block, 'tool_use_id')
    const { content } = block
    let text = ''
    if (typeof content === 'string') text = content
    else if (Array.isArray(content)) {
      const parts: Part[] = []
      for (const part of content as readonly unknown[])
        if (isBlock(part)) this.#addPart(part, parts)
        else this.#refuseBlock('the content of a tool result must be text or a list of blocks', 'invalid-type')
      const seen = parts.filter(({ type }) => type !== 'text')
      text = textOf(parts)
      if (seen.length > 0) {
        text = `${text}${text === '' ? '' : '\n'}(What this tool shows follows in the next message.)`
        pictures.push({ type: 'text', text: `Shown by the tool call ${id}:` }, ...seen)
      }
    } else if (content !== undefined && content !== null) {
      this.#refuseBlock('the content of a tool result must be text or a list of blocks', 'invalid-type')
    }
    // Chat templates know no failed tools: the text says it, unless it does already.
    if (block['is_error'] === true && !/^.{0,40}error/is.test(text)) text = `Error: ${text}`
    this.messages.push({ role: 'tool', tool_call_id: id, content: text } as ChatMessage)
  }

  #addAssistant(blocks: readonly MessagesBlock[]): void {
    let text = ''
    const calls: object[] = []
    const reasoning: Partial<Record<ReasoningField, string>> = {}
    for (let i = 0; i < blocks.length; i++) {
      this.#block = i
      const block = blocks[i] as MessagesBlock
      if (block.type === 'text') text += this.#string(block, 'text')
      else if (block.type === 'tool_use') calls.push(this.#toolCall(block))
      else if (block.type === 'thinking') addReasoning(reasoning, this.#string(block, 'thinking'), block['signature'])
      else if (block.type !== 'redacted_thinking') this.#refuseUnknown(block)
    }
    const message = { role: 'assistant', content: text === '' && calls.length > 0 ? null : text, ...reasoning }
    this.messages.push((calls.length === 0 ? message : { ...message, tool_calls: calls }) as ChatMessage)
  }

  #toolCall(block: MessagesBlock): object {
    const { input } = block
    const name = this.#string(block, 'name')
    if (typeof input !== 'object' || input === null) this.#refuseBlock("'input' must be an object", 'invalid-type')
    return { id: this.#string(block, 'id'), type: 'function', function: { name, arguments: JSON.stringify(input) } }
  }

  /** A block that a user or a tool may say. */
  #addPart(block: MessagesBlock, parts: Part[]): void {
    if (block.type === 'text') parts.push({ type: 'text', text: this.#string(block, 'text') })
    else if (block.type === 'image') this.#addImage(block, parts)
    else if (block.type === 'document') this.#addDocument(block, parts)
    else if (block.type === 'search_result') this.#addSearchResult(block, parts)
    else if (block.type === 'tool_reference')
      parts.push({ type: 'text', text: `The tool ${this.#string(block, 'tool_name')} can be used.` })
    else this.#refuseUnknown(block)
  }

  #addImage(block: MessagesBlock, parts: Part[]): void {
    const source = this.#source(block)
    if (source.type === 'url') parts.push(imageAt(this.#string(source, 'url')))
    else if (source.type === 'base64')
      parts.push(imageAt(`data:${this.#string(source, 'media_type')};base64,${this.#string(source, 'data')}`))
    else this.#refuseSource(source)
  }

  #addDocument(block: MessagesBlock, parts: Part[]): void {
    const source = this.#source(block)
    const { title, context } = block
    const above = [title, context].filter((line) => typeof line === 'string' && line !== '').join('\n')
    if (above !== '') parts.push({ type: 'text', text: above })
    if (source.type === 'text') parts.push({ type: 'text', text: this.#string(source, 'data') })
    else if (source.type === 'base64') {
      const file_data = `data:${this.#string(source, 'media_type')};base64,${this.#string(source, 'data')}`
      const filename = typeof title === 'string' && title !== '' ? title : 'document.pdf'
      parts.push({ type: 'file', file: { filename, file_data } })
    } else if (source.type !== 'content') this.#refuseSource(source)
    else if (typeof source['content'] === 'string') parts.push({ type: 'text', text: source['content'] })
    else this.#addAll(source['content'], parts)
  }

  #addSearchResult(block: MessagesBlock, parts: Part[]): void {
    parts.push({ type: 'text', text: `${this.#string(block, 'title')}\n${this.#string(block, 'source')}` })
    this.#addAll(block['content'], parts)
  }

  /** Blocks inside a block: text and pictures only, so that nothing nests further. */
  #addAll(blocks: unknown, parts: Part[]): void {
    if (!Array.isArray(blocks)) {
      this.#refuseBlock("'content' must be a list of blocks", 'invalid-type')
      return
    }
    for (const block of blocks as readonly unknown[]) {
      if (!isBlock(block)) this.#refuseBlock("'content' must be a list of blocks", 'invalid-type')
      else if (block.type === 'text' || block.type === 'image') this.#addPart(block, parts)
      else this.#refuseUnknown(block)
    }
  }

  #source(block: MessagesBlock): MessagesBlock {
    const { source } = block
    if (isBlock(source)) return source
    this.#refuseBlock("'source' must be an object with a type", 'invalid-type')
    return { type: '' }
  }

  #string(block: MessagesBlock, name: string): string {
    const value = block[name]
    if (typeof value === 'string') return value
    this.#refuseBlock(
      `'${name}' must be a string`,
      value === undefined ? 'missing-required-parameter' : 'invalid-type',
      name,
    )
    return ''
  }

  #refuseUnknown({ type }: MessagesBlock): void {
    this.#refuseBlock(`blocks of the type '${shown(type)}' are not supported here`)
  }

  #refuseSource({ type }: MessagesBlock): void {
    this.#refuseBlock(`sources of the type '${shown(type)}' are not supported here: send the data itself`)
  }

  #refuseBlock(message: string, code?: FaultCode, field?: string): void {
    const place = this.#turn < 0 ? 'system' : `${this.#list}[${this.#turn}].content`
    this.refuse(message, `${place}[${this.#block}]${field === undefined ? '' : `.${field}`}`, code)
  }
}

const imageAt = (url: string): Part => ({ type: 'image_url', image_url: { url } })

const isBlock = (value: unknown): value is MessagesBlock =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'

/** Types are the client's own words: a long one is cut before it is repeated. */
const shown = (type: string): string => (type.length > 60 ? `${type.slice(0, 60)}…` : type)

/** Plain text is sent as such: not every chat template takes a list. */
function contentOf(parts: readonly Part[]): string | Part[] {
  return parts.every(({ type }) => type === 'text') ? textOf(parts) : (parts as Part[])
}

function textOf(parts: readonly Part[]): string {
  const only = parts[0]
  if (parts.length === 1 && only?.type === 'text') return only['text'] as string
  return parts.flatMap((part) => (part.type === 'text' ? [part['text'] as string] : [])).join('\n')
}

function addReasoning(reasoning: Partial<Record<ReasoningField, string>>, text: string, signature: unknown): void {
  for (const field of ['reasoning_content', 'reasoning'] as const)
    if (signature === SIGNATURES[field]) reasoning[field] = (reasoning[field] ?? '') + text
}

const BILLING = 'x-anthropic-billing-header:'

/**
 * Claude Code puts a line for Anthropic's billing in front of its system prompt, with a hash that changes with every
 * request. It says nothing to an engine, and no prompt behind it would be found in a prefix cache.
 */
export function withoutBilling(text: string): string {
  if (!text.startsWith(BILLING)) return text
  const end = text.indexOf('\n')
  return end < 0 ? '' : text.slice(end + 1)
}
