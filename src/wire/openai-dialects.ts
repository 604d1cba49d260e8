import { StreamEncoder, WholeAnswer } from './answer.ts'
import type { Checked } from './check.ts'
import type { Dialect, Wording } from './dialect.ts'
import { type ReadBody, readChat, readCompletion } from './read-body.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'

/** OpenAI's chat and text completions: the dialects in which the platform itself thinks, so that nothing is translated. */
export const IN_OPENAI_WORDS: Pick<Wording, 'stream' | 'whole'> = {
  stream: (identity) => new StreamEncoder(identity),
  whole: (identity) => new WholeAnswer(identity),
}

function worded(checked: Checked<ReadBody<ChatBody | CompletionBody>>): Checked<Wording> {
  if (checked.kind === 'fault') return checked
  const { body, raw } = checked.value
  return { kind: 'ok', value: { body, raw, stream: IN_OPENAI_WORDS.stream, whole: IN_OPENAI_WORDS.whole } }
}

export const CHAT_DIALECT: Dialect = {
  route: 'chat',
  kind: 'chat',
  screenedAs: 'chat',
  idPrefix: 'chatcmpl-',
  read: (bytes, onlyModel) => worded(readChat(bytes, onlyModel)),
}

export const COMPLETION_DIALECT: Dialect = {
  route: 'completions',
  kind: 'completion',
  screenedAs: 'completion',
  idPrefix: 'cmpl-',
  read: (bytes, onlyModel) => worded(readCompletion(bytes, onlyModel)),
}
