import type { Static } from 'typebox'
import { Type } from '../../base/schema.ts'
import { LatencySchema } from './scenario-retrieval.ts'

/**
 * What screens would find in a scenario's requests, which have no text. Who is screened and what follows from a finding
 * is the platform's configuration (`screening`); a guard model is a model of the platform, and runs on its engines.
 */
export const ScreensSchema = Type.Object(
  {
    check: Type.Optional(LatencySchema),
    harmfulRatio: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Share of the requests that should be blocked; 0.' }),
    ),
    sureRatio: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'Share of these of which the embedded judges are sure; the others are in the grey zone; 0.5.',
      }),
    ),
    greyRatio: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Share of the other requests in the grey zone; 0.' }),
    ),
  },
  {
    additionalProperties: false,
    description: 'What judges would say of the requests, and the time that the embedded ones take; none if absent.',
  },
)

export type ScreensSpec = Static<typeof ScreensSchema>
