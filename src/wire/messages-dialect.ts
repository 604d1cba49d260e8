import { type Checked, makeCheck } from './check.ts'
import type { AnswerIdentity, Dialect, StreamWriter, WholeWriter, Wording } from './dialect.ts'
import { NativeMessages } from './messages-native.ts'
import { CountTokensBody, MessagesBody } from './messages-schema.ts'
import { MessagesStream } from './messages-stream.ts'
import { messagesToChat } from './messages-to-chat.ts'
import { MessagesWhole } from './messages-whole.ts'
import { NativeStream, NativeWhole } from './native-stream.ts'
import { andThen, type ReadBody, readAs } from './read-body.ts'

/**
 * Anthropic's Messages. Engines that speak it get the client's own body, and their events are passed on; the others are
 * asked for a chat, and its answer is put into content blocks.
 */
const checkMessages = makeCheck(MessagesBody)
const checkCount = makeCheck(CountTokensBody)

const stream = (identity: AnswerIdentity): StreamWriter =>
  new NativeStream(new MessagesStream(identity), new NativeMessages(), identity)
const whole = (identity: AnswerIdentity): WholeWriter =>
  new NativeWhole(new MessagesWhole(identity), new NativeMessages(), identity)

const worded = (checked: Checked<ReadBody<MessagesBody | CountTokensBody>>): Checked<Wording> =>
  andThen(checked, ({ body: asked, raw }) =>
    andThen(messagesToChat(asked), ({ body, ignored }) => ({
      kind: 'ok',
      value: { body, ignored, native: { dialect: 'messages', raw }, stream, whole },
    })),
  )

export const MESSAGES_DIALECT: Dialect = {
  route: 'messages',
  kind: 'chat',
  screenedAs: 'messages',
  idPrefix: 'msg_',
  read: (bytes) => worded(readAs(checkMessages, bytes)),
}

/** The same conversation, to be counted and not to be answered. */
export const COUNT_TOKENS_DIALECT: Dialect = {
  ...MESSAGES_DIALECT,
  read: (bytes) => worded(readAs(checkCount, bytes)),
}
