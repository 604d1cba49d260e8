import type { SegmentText } from './prompt-text.ts'

/**
 * A conversation as one text, for engines that take only text. Each family of models was trained on its own marks;
 * these endpoints apply no template, so the marks are added here.
 */
export type ChatTemplate = 'plain' | 'chatml' | 'llama-3' | 'mistral'

export function renderChat(template: ChatTemplate, turns: readonly SegmentText[]): string {
  switch (template) {
    case 'plain':
      return `${turns.map(({ role, text }) => `${role}: ${text}`).join('\n')}\nassistant:`
    case 'chatml':
      return `${turns.map(({ role, text }) => `<|im_start|>${role}\n${text}<|im_end|>\n`).join('')}<|im_start|>assistant\n`
    case 'llama-3': {
      const header = (role: string): string => `<|start_header_id|>${role}<|end_header_id|>\n\n`
      const said = turns.map(({ role, text }) => `${header(role)}${text}<|eot_id|>`)
      return `<|begin_of_text|>${said.join('')}${header('assistant')}`
    }
    case 'mistral':
      return `<s>${turns.map(({ role, text }) => (role === 'assistant' ? ` ${text}</s>` : `[INST] ${text} [/INST]`)).join('')}`
  }
}
