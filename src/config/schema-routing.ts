import Type from 'typebox'
import { ROUTING_RULES } from '../policy/routing/plain-rules.ts'
import { type ScorerName, WEIGHT_DEFAULTS } from '../policy/routing/scorers/scorers.ts'
import { section } from './schema-fields.ts'

/** Which replica: the rule, and what each scorer counts for. */

const ABOUT: Readonly<Record<ScorerName, string>> = {
  queue: 'Of the time until the prompts that were placed at a replica before have been read.',
  prefill: 'Of the time to read what the replica does not hold of the prompt.',
  distance: 'Of the round trip to the replica\u2019s region.',
  load: 'Of the predicted time of everything in flight at the replica: keeps equals equal.',
  session: 'In microseconds: how much later a first token may be to stay where the session was.',
}

const weightOf = (name: ScorerName) =>
  Type.Number({ default: WEIGHT_DEFAULTS[name], minimum: 0, maximum: 1_000_000_000, description: ABOUT[name] })

const names = Object.keys(WEIGHT_DEFAULTS) as ScorerName[]
const weights = Object.fromEntries(names.map((name) => [name, weightOf(name)])) as Record<
  ScorerName,
  ReturnType<typeof weightOf>
>

export const RoutingSchema = section(
  {
    rule: Type.Enum([...ROUTING_RULES], {
      default: 'soonest-first-token',
      description: 'Which replica gets a request. The others are for comparison.',
    }),
    weights: section(weights, 'What each scorer counts for; 1 is face value, 0 turns it off.'),
  },
  'Choosing a replica.',
)
