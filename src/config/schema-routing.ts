import { Type } from '../base/schema.ts'
import { ROUTING_RULES } from '../policy/routing/plain-rules.ts'
import { type ScorerName, WEIGHT_DEFAULTS, WEIGHT_MEANINGS } from '../policy/routing/scorers/scorers.ts'
import { section } from './schema-fields.ts'

/** Which replica: the rule, and what each scorer counts for. */

const weightOf = (name: ScorerName) =>
  Type.Number({
    default: WEIGHT_DEFAULTS[name],
    minimum: 0,
    maximum: 1_000_000_000,
    description: WEIGHT_MEANINGS[name],
  })

const names = Object.keys(WEIGHT_DEFAULTS) as ScorerName[]
const weights = Object.fromEntries(names.map((name) => [name, weightOf(name)])) as Record<
  ScorerName,
  ReturnType<typeof weightOf>
>

export const RoutingSchema = section(
  {
    rule: Type.Enum([...ROUTING_RULES], {
      default: 'soonest-first-token',
      description: 'Rule that chooses the replica of a request. All but the default are for comparison.',
    }),
    weights: section(weights, 'Weights of the scorers; 1 takes a scorer as it is, 0 turns it off.'),
  },
  'Routing: which replica of a pool gets a request.',
)
