import { invalidRequest, type WireFault } from './openai-error.ts'
import { unsealReasoning } from './responses-items.ts'

/**
 * The items of a Responses input as the messages of a chat.
 *
 *   reasoning, message, function_call, function_call   one turn of the assistant: one message, with its calls
 *   function_call_output                               a message of the role `tool`
 *   instructions, then system and developer messages   one system message: many chat templates take no second one, and
 *                                                      none but OpenAI's the role `developer`
 *
 * What a chat cannot say is refused, with the item's name: items of tools that run inside OpenAI, files and images that
 * only OpenAI has.
 */
type Json = Readonly<Record<string, unknown>>

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  content: string | null | readonly Json[]
  tool_calls?: Json[]
  readonly tool_call_id?: string
  readonly reasoning_content?: string
  readonly refusal?: string
}

export class InputMessages {
  readonly messages: ChatMessage[] = []
  /** The first thing that is wrong; nothing is read after it. */
  fault: WireFault | undefined
  /** Reasoning that waits for the turn that it led to. */
  #reasoning = ''

  instructions(text: string): void {
    this.#system(text)
  }

  input(input: string | readonly object[], at = 'input'): void {
    if (typeof input === 'string') this.#user(input)
    else for (let i = 0; i < input.length && this.fault === undefined; i++) this.#item(input[i] as Json, `${at}[${i}]`)
  }

  #item(item: Json, at: string): void {
    const type = item['type'] ?? (item['role'] === undefined ? 'item_reference' : 'message')
    switch (type) {
      case 'message':
        this.#message(item, at)
        break
      case 'reasoning':
        this.#reasoning += reasoningText(item)
        break
      case 'function_call':
        this.#call(item, at, 'arguments')
        break
      case 'custom_tool_call':
        this.#call(item, at, 'input')
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#output(item, at)
        break
      case 'item_reference':
        this.#refuse(`${at}.id`, 'no item of this name is kept. Send the item itself, or ask with `store: true`')
        break
      default:
        this.#refuse(`${at}.type`, 'items of this type are not supported here. Leave the item out')
    }
  }

  #message(item: Json, at: string): void {
    const { role, content } = item
    if (typeof content !== 'string' && !Array.isArray(content)) {
      this.#wrong(`${at}.content`, 'it must be a string or an array')
      return
    }
    if (role === 'assistant') this.#assistant(content as string | readonly unknown[], at)
    else if (role === 'user') this.#user(this.#parts(content as string | readonly unknown[], `${at}.content`))
    else if (role === 'system' || role === 'developer') this.#system(this.#parts(content, `${at}.content`))
    else this.#wrong(`${at}.role`, 'it must be "user", "assistant", "system" or "developer"')
  }

  #user(content: string | readonly Json[]): void {
    this.#reasoning = ''
    this.messages.push({ role: 'user', content })
  }

  #system(content: string | readonly Json[]): void {
    this.#reasoning = ''
    const last = this.messages.at(-1)
    if (last?.role === 'system' && typeof last.content === 'string' && typeof content === 'string') {
      last.content += `\n\n${content}`
    } else this.messages.push({ role: 'system', content })
  }

  #assistant(content: string | readonly unknown[], at: string): void {
    let text = ''
    let refusal = ''
    if (typeof content === 'string') text = content
    else {
      for (let i = 0; i < content.length; i++) {
        const part = content[i] as Json | null
        if (typeof part?.['text'] === 'string') text += part['text']
        else if (typeof part?.['refusal'] === 'string') refusal += part['refusal']
        else {
          this.#wrong(`${at}.content[${i}]`, 'it must be output_text with a `text`, or a refusal')
          return
        }
      }
    }
    const last = this.messages.at(-1)
    // Words after the calls of the same turn: between the calls and their outputs no engine takes a message.
    if (last?.tool_calls !== undefined) last.content = `${typeof last.content === 'string' ? last.content : ''}${text}`
    else this.#turn(text === '' && refusal !== '' ? null : text, refusal)
  }

  /** A message of the assistant, with the reasoning that came before it. */
  #turn(content: string | null, refusal = ''): ChatMessage {
    const message: ChatMessage = {
      role: 'assistant',
      content,
      ...(this.#reasoning !== '' && { reasoning_content: this.#reasoning }),
      ...(refusal !== '' && { refusal }),
    }
    this.#reasoning = ''
    this.messages.push(message)
    return message
  }

  #call(item: Json, at: string, field: 'arguments' | 'input'): void {
    const { call_id: id, name, [field]: text } = item
    if (typeof id !== 'string' || id === '') this.#wrong(`${at}.call_id`, 'it must be a string that is not empty')
    else if (typeof name !== 'string' || name === '') this.#wrong(`${at}.name`, 'it must be a string that is not empty')
    else if (typeof text !== 'string') this.#wrong(`${at}.${field}`, 'it must be a string')
    else {
      const last = this.messages.at(-1)
      const turn = last?.role === 'assistant' && this.#reasoning === '' ? last : this.#turn(null)
      turn.tool_calls ??= []
      turn.tool_calls.push(
        field === 'arguments'
          ? { id, type: 'function', function: { name, arguments: text } }
          : { id, type: 'custom', custom: { name, input: text } },
      )
    }
  }

  #output(item: Json, at: string): void {
    const { call_id: id, output } = item
    if (typeof id !== 'string' || id === '') this.#wrong(`${at}.call_id`, 'it must be a string that is not empty')
    else if (typeof output !== 'string' && !Array.isArray(output))
      this.#wrong(`${at}.output`, 'it must be a string or an array')
    else {
      this.#reasoning = ''
      const content = this.#parts(output as string | readonly unknown[], `${at}.output`)
      this.messages.push({ role: 'tool', tool_call_id: id, content })
    }
  }

  /** A single text is written as text: not every engine takes a list of parts. */
  #parts(content: string | readonly unknown[], at: string): string | Json[] {
    if (typeof content === 'string') return content
    const parts: Json[] = []
    for (let i = 0; i < content.length && this.fault === undefined; i++) {
      const part = this.#part(content[i] as Json | null, `${at}[${i}]`)
      if (part !== undefined) parts.push(part)
    }
    const [first] = parts
    return parts.length === 1 && first?.['type'] === 'text' ? String(first['text']) : parts
  }

  #part(part: Json | null, at: string): Json | undefined {
    switch (part?.['type']) {
      case 'input_text':
      case 'output_text':
      case 'text':
        if (typeof part['text'] === 'string') return { type: 'text', text: part['text'] }
        return this.#wrong(`${at}.text`, 'it must be a string')
      case 'input_image':
        return this.#image(part, at)
      case 'input_file':
        return this.#file(part, at)
      case 'input_audio':
        if (isObject(part['input_audio'])) return { type: 'input_audio', input_audio: part['input_audio'] }
        return this.#wrong(`${at}.input_audio`, 'it must be an object')
      default:
        return this.#wrong(`${at}.type`, 'it must be "input_text", "input_image", "input_file" or "input_audio"')
    }
  }

  #image(part: Json, at: string): Json | undefined {
    const { image_url: url, detail, file_id: fileId } = part
    if (typeof url === 'string' && url !== '') {
      return { type: 'image_url', image_url: typeof detail === 'string' ? { url, detail } : { url } }
    }
    if (typeof fileId === 'string') return this.#refuse(`${at}.file_id`, 'send the image itself as `image_url`')
    return this.#wrong(`${at}.image_url`, 'it must be a string that is not empty')
  }

  #file(part: Json, at: string): Json | undefined {
    const { file_data: data, filename, file_id: fileId, file_url: url } = part
    if (typeof data === 'string' && data !== '') {
      return { type: 'file', file: { file_data: data, ...(typeof filename === 'string' && { filename }) } }
    }
    if (typeof fileId === 'string') return this.#refuse(`${at}.file_id`, 'send the file itself as `file_data`')
    if (typeof url === 'string') return this.#refuse(`${at}.file_url`, 'send the file itself as `file_data`')
    return this.#wrong(`${at}.file_data`, 'it must be a string that is not empty')
  }

  #wrong(param: string, because: string): undefined {
    this.fault = invalidRequest(`Invalid '${param}': ${because}.`, param, 'invalid-value')
    return undefined
  }

  #refuse(param: string, because: string): undefined {
    this.fault = invalidRequest(`Unsupported '${param}': ${because}.`, param, 'unsupported-parameter')
    return undefined
  }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** As we said it ourselves: in `content`, sealed, or in `summary` where the client had asked for one. */
function reasoningText({ content, summary, encrypted_content: sealed }: Json): string {
  const hasContent = Array.isArray(content) && content.length > 0
  const unsealed = hasContent ? '' : unsealReasoning(sealed)
  if (unsealed !== '') return unsealed
  const texts = hasContent ? content : summary
  if (!Array.isArray(texts)) return ''
  return texts.map((part: Json | null) => (typeof part?.['text'] === 'string' ? part['text'] : '')).join('')
}
