import type { Checked } from './check.ts'
import type { Dialect } from './dialect.ts'
import { checkEmbedding, type EmbeddingBody } from './embeddings.ts'
import { CHAT_DIALECT, COMPLETION_DIALECT, IN_OPENAI_WORDS } from './openai-dialects.ts'
import { andThen, checkChat, checkCompletion, type ReadBody, readAs } from './read-body.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'

/**
 * Azure's way to name a model: the deployment in the address. What a body says of its model does not count, because
 * Azure's own clients send there what they like, or nothing.
 */
export const deployedChat = (model: string): Dialect => deployed(CHAT_DIALECT, model, checkChat)

export const deployedCompletion = (model: string): Dialect => deployed(COMPLETION_DIALECT, model, checkCompletion)

export const readDeployedEmbedding = (bytes: Buffer, model: string): Checked<ReadBody<EmbeddingBody>> =>
  readAs((json) => checkEmbedding(named(json, model)), bytes)

function deployed(
  dialect: Dialect,
  model: string,
  check: (json: unknown) => Checked<ChatBody | CompletionBody>,
): Dialect {
  const read: Dialect['read'] = (bytes) =>
    andThen(
      readAs((json) => check(named(json, model)), bytes),
      (body) => ({ kind: 'ok', value: { ...body, ...IN_OPENAI_WORDS } }),
    )
  return { ...dialect, read }
}

function named(json: unknown, model: string): unknown {
  return typeof json !== 'object' || json === null || Array.isArray(json) ? json : { ...json, model }
}
