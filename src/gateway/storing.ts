import { type Clock, usToMs } from '../base/clock.ts'
import type { ArchivedAnswer, NotArchived } from '../domain/archive.ts'
import type { Usage } from '../domain/delta.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { Archive } from '../lifecycle/archive-ports.ts'
import type { Sink } from '../lifecycle/ports.ts'
import { WholeAnswer } from '../wire/answer.ts'
import type { Checked } from '../wire/check.ts'
import type { AnswerIdentity } from '../wire/dialect.ts'
import type { ChatBody } from '../wire/schemas.ts'
import { spliceJson } from '../wire/splice-json.ts'
import { askedWith, readPairs } from '../wire/stored-completions.ts'
import { type Collected, KeepingSink } from './keeping-sink.ts'

/**
 * What becomes of `store: true` in a chat completion. Storing is Spillway's own: an engine never sees `store`, nor the
 * metadata that belong to it, or a provider behind us would keep what the tenant's policy forbids. An answer that is not
 * stored is served all the same, and says why not in a header.
 */
export interface StoringWish {
  readonly metadata: ArchivedAnswer['metadata']
  readonly whyNot: NotArchived | undefined
  /** The body as engines get it. */
  readonly body: ChatBody
}

/** Undefined: the client does not ask for it. */
export function readStoring(
  archive: Archive,
  tenant: Tenant,
  body: ChatBody,
  bodyBytes: number,
): Checked<StoringWish | undefined> {
  if (body.store !== true) return { kind: 'ok', value: undefined }
  const { store: _store, metadata, ...rest } = body as ChatBody & { metadata?: unknown }
  const checked = readPairs(metadata)
  if (checked.kind === 'fault') return checked
  return {
    kind: 'ok',
    value: { metadata: checked.value, whyNot: archive.whyNot(tenant, bodyBytes), body: rest as ChatBody },
  }
}

/** Headers of an answer whose client asked for storing. */
export const storingHeaders = ({ whyNot }: StoringWish): string[] =>
  whyNot === undefined ? ['x-spillway-stored', 'true'] : ['x-spillway-stored', 'false', 'x-spillway-not-stored', whyNot]

export interface KeptChat {
  readonly archive: Archive
  readonly clock: Clock
  readonly tenant: Tenant
  readonly requestId: string
  readonly identity: AnswerIdentity
}

/** The sink of an answer that is stored when it has finished. */
export function keepingChat(sink: Sink, wish: StoringWish, kept: KeptChat): Sink {
  if (wish.whyNot !== undefined) return sink
  const { archive, clock, tenant, requestId, identity } = kept
  const createdAtMs = Math.floor(usToMs(clock.now()))
  return new KeepingSink(sink, {
    sizeMax: archive.answerBytesMax,
    isStreamed: wish.body.stream === true,
    onTooLarge: () => archive.lose('too-large'),
    onFinished(answer, usage) {
      const document = documentOf(answer, identity, usage)
      archive.keep(tenant, {
        id: identity.id,
        kind: 'chat.completion',
        createdAtMs,
        model: identity.model,
        metadata: wish.metadata,
        document: `${document.slice(0, -1)},${JSON.stringify(askedWith(wish.body, requestId)).slice(1)}`,
        input: JSON.stringify(wish.body.messages),
      })
    },
  })
}

/** The answer as the client would have got it in one piece. */
function documentOf({ joined, document }: Collected, identity: AnswerIdentity, usage: Usage): string {
  const answer = new WholeAnswer(identity)
  if (document !== undefined) answer.relay(document)
  else answer.add(joined.whole(), joined.beside)
  const encoded = answer.encode(usage)
  const isUnsigned = joined.hasFrames && joined.beside?.['system_fingerprint'] === undefined
  return isUnsigned ? spliceJson(encoded, { system_fingerprint: null }) : encoded
}
