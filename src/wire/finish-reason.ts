/**
 * Finish reasons in OpenAI's words. Engines have their own: TGI says `eos_token`, some servers send an empty string
 * with every chunk, and an aborted answer has none. Unknown words are passed on: a client of that engine may know them.
 */
const OPENAI_WORDS: Readonly<Record<string, string | null>> = {
  '': null,
  null: null,
  // Python's None as a string: Triton's vLLM backend.
  None: null,
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  stop_token: 'stop',
  max_tokens: 'length',
  max_length: 'length',
  tool_use: 'tool_calls',
}

/** The engine gave up in the middle: the text so far is not an answer. */
const BROKEN_OFF: ReadonlySet<string> = new Set(['abort', 'aborted', 'cancelled', 'error', 'model_error'])

export function readFinishReason(reason: unknown): string | null {
  if (typeof reason !== 'string') return null
  const known = OPENAI_WORDS[reason]
  return known === undefined ? reason : known
}

export const isBrokenOff = (finishReason: string | null): boolean =>
  finishReason !== null && BROKEN_OFF.has(finishReason)
