import Type, { type Static } from 'typebox'

/** The parts of a scenario that are about documents and about questions that come again. */

const LatencySchema = Type.Object(
  {
    p50Ms: Type.Number({ exclusiveMinimum: 0, description: 'Half of the answers come within this time.' }),
    p95Ms: Type.Number({ exclusiveMinimum: 0, description: 'And 95 in a hundred within this.' }),
  },
  { additionalProperties: false, description: 'How long one answer takes: log-normal.' },
)

/** Each stream that retrieves has a corpus of its own; searching it runs the same code as live. */
export const RetrievalWorldSchema = Type.Object(
  {
    store: Type.Optional(LatencySchema),
    embedder: Type.Optional(LatencySchema),
    passageTokens: Type.Optional(Type.Integer({ minimum: 1, description: 'Length of a passage; 170.' })),
  },
  {
    additionalProperties: false,
    description:
      'The store and the embedder behind retrieval, for each statement and each question; as measured if absent.',
  },
)

export const StreamRetrievalSchema = Type.Object(
  { passages: Type.Integer({ minimum: 1, maximum: 100, description: 'How many passages it asks for.' }) },
  { additionalProperties: false, description: 'Asks for passages of its tenant\u2019s corpus; in simulation only.' },
)

export const QuestionsSchema = Type.Object(
  {
    count: Type.Integer({ minimum: 1, description: 'How many different questions are asked.' }),
    wordings: Type.Integer({ minimum: 1, description: 'In how many ways each of them is put.' }),
    similarity: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'Cosine of two wordings of one question, on the average.',
    }),
  },
  {
    additionalProperties: false,
    description: 'Questions that come again: for caches of passages and of answers. Without it every question is new.',
  },
)

export type RetrievalWorldSpec = Static<typeof RetrievalWorldSchema>
export type Latency = Static<typeof LatencySchema>
export type Questions = Static<typeof QuestionsSchema>
