import type { Static } from 'typebox'
import { Type } from '../../base/schema.ts'

/** The parts of a scenario about documents and about repeated questions. */

export const LatencySchema = Type.Object(
  {
    p50Ms: Type.Number({ exclusiveMinimum: 0, description: 'Time within which half of the answers come.' }),
    p95Ms: Type.Number({ exclusiveMinimum: 0, description: 'Time within which 95 % of the answers come.' }),
  },
  { additionalProperties: false, description: 'Latency of one answer, log-normal.' },
)

/** Each tenant that retrieves has its own corpus; searching it runs the same code as live. */
export const RetrievalWorldSchema = Type.Object(
  {
    store: Type.Optional(LatencySchema),
    embedder: Type.Optional(LatencySchema),
    passageTokens: Type.Optional(Type.Integer({ minimum: 1, description: 'Length of a passage; 170.' })),
  },
  {
    additionalProperties: false,
    description:
      'Latency of the store for each statement and of the embedder for each question; as measured if absent.',
  },
)

export const StreamRetrievalSchema = Type.Object(
  { passages: Type.Integer({ minimum: 1, maximum: 100, description: 'Number of passages asked for.' }) },
  {
    additionalProperties: false,
    description: 'Requests ask for passages of the tenant\u2019s corpus; in simulation only.',
  },
)

export const QuestionsSchema = Type.Object(
  {
    count: Type.Integer({ minimum: 1, description: 'Number of different questions.' }),
    wordings: Type.Integer({ minimum: 1, description: 'Number of wordings of each question.' }),
    similarity: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'Cosine of two wordings of one question, on the average.',
    }),
  },
  {
    additionalProperties: false,
    description: 'Repeated questions, for caches of passages and of answers. Absent: every question is new.',
  },
)

export type RetrievalWorldSpec = Static<typeof RetrievalWorldSchema>
export type LatencySpec = Static<typeof LatencySchema>
export type Questions = Static<typeof QuestionsSchema>
