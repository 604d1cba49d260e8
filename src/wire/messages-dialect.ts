import { type Checked, makeCheck } from './check.ts'
import type { AnswerIdentity, Dialect, Wording } from './dialect.ts'
import { CountTokensBody, MessagesBody } from './messages-schema.ts'
import { MessagesStream } from './messages-stream.ts'
import { messagesToChat } from './messages-to-chat.ts'
import { MessagesWhole } from './messages-whole.ts'
import { andThen, readJson } from './read-body.ts'

/** Anthropic's Messages, translated: engines are asked for a chat, and its answer is put into content blocks. */
const checkMessages = makeCheck(MessagesBody)
const checkCount = makeCheck(CountTokensBody)

const stream = (identity: AnswerIdentity): MessagesStream => new MessagesStream(identity)
const whole = (identity: AnswerIdentity): MessagesWhole => new MessagesWhole(identity)

const worded = (checked: Checked<MessagesBody | CountTokensBody>): Checked<Wording> =>
  andThen(andThen(checked, messagesToChat), ({ body, ignored }) => ({
    kind: 'ok',
    value: { body, ignored, stream, whole },
  }))

export const MESSAGES_DIALECT: Dialect = {
  route: 'messages',
  kind: 'chat',
  idPrefix: 'msg_',
  read: (bytes) => worded(andThen(readJson(bytes), checkMessages)),
}

/** The same conversation, to be counted and not to be answered. */
export const COUNT_TOKENS_DIALECT: Dialect = {
  ...MESSAGES_DIALECT,
  read: (bytes) => worded(andThen(readJson(bytes), checkCount)),
}
