import Type, { type Static } from 'typebox'
import { QuestionsSchema, RetrievalWorldSchema, StreamRetrievalSchema } from './scenario-retrieval.ts'

/**
 * A workload, described: who sends what, how it comes, what goes wrong, and what should hold. The `platform` part is a
 * configuration as `spillway serve` takes it, so what is simulated is what would run; pools become simulated ones.
 */
const seconds = (description: string) => Type.Number({ minimum: 0, description })

/** Token counts: how long prompts or answers are. */
export const LengthsSchema = Type.Union([
  Type.Object(
    { kind: Type.Literal('fixed'), tokens: Type.Integer({ minimum: 1, description: 'Always this many.' }) },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      kind: Type.Literal('uniform'),
      min: Type.Integer({ minimum: 1, description: 'At least so many.' }),
      max: Type.Integer({ minimum: 1, description: 'At most so many.' }),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      kind: Type.Literal('quantiles'),
      points: Type.Array(Type.Array(Type.Number({ minimum: 0 }), { minItems: 2, maxItems: 2 }), {
        minItems: 2,
        description: 'Pairs of quantile and tokens, ascending; between them lengths are interpolated.',
      }),
    },
    { additionalProperties: false },
  ),
])

/** When requests come. `closed` keeps so many sessions busy: each sends its next request a while after the answer. */
export const ArrivalsSchema = Type.Union([
  Type.Object(
    {
      kind: Type.Literal('poisson'),
      ratePerS: Type.Number({ exclusiveMinimum: 0, description: 'Mean arrivals a second.' }),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      kind: Type.Literal('gamma'),
      ratePerS: Type.Number({ exclusiveMinimum: 0, description: 'Mean arrivals a second.' }),
      cv: Type.Number({ exclusiveMinimum: 0, description: 'Coefficient of variation of the gaps: 1 is Poisson.' }),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      kind: Type.Literal('weibull'),
      ratePerS: Type.Number({ exclusiveMinimum: 0, description: 'Mean arrivals a second.' }),
      shape: Type.Number({ exclusiveMinimum: 0, description: 'Below 1 is bursty, 1 is Poisson.' }),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      kind: Type.Literal('closed'),
      sessions: Type.Integer({ minimum: 1, description: 'How many clients, each with one request at a time.' }),
      thinkS: Type.Number({ minimum: 0, description: 'Mean time between an answer and the next request.' }),
    },
    { additionalProperties: false },
  ),
])

export const PhaseSchema = Type.Object(
  {
    fromS: seconds('Start of the phase.'),
    toS: seconds('End of it.'),
    factor: Type.Number({ minimum: 0, description: 'The rate is multiplied by this.' }),
    toFactor: Type.Optional(Type.Number({ minimum: 0, description: 'A ramp: the factor at the end of the phase.' })),
  },
  { additionalProperties: false },
)

export const StreamSchema = Type.Object(
  {
    tenant: Type.String({ description: 'A tenant, or a group: then each of its tenants sends a stream like this.' }),
    model: Type.String({ description: 'A model of the platform, or one of its aliases.' }),
    region: Type.Optional(
      Type.String({
        description: 'Where its clients are: they come to this region\u2019s gateway. The first if absent.',
      }),
    ),
    band: Type.Optional(
      Type.Enum(['interactive', 'standard', 'offline'], { description: 'Priority class; `standard` if absent.' }),
    ),
    bids: Type.Optional(Type.Array(Type.Number(), { minItems: 1, description: 'Each request draws one of these.' })),
    arrivals: ArrivalsSchema,
    fromS: Type.Optional(seconds('The stream starts here.')),
    toS: Type.Optional(seconds('And ends here.')),
    phases: Type.Optional(Type.Array(PhaseSchema, { description: 'Spikes and ramps.' })),
    prompt: LengthsSchema,
    output: LengthsSchema,
    maxTokens: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1 }), Type.Literal('unset'), Type.Literal('exact')], {
        description:
          'What the client says it wants at most; `unset` by default. Answers are cut there. `exact`: it asks for as much as it will get, as `bench` does.',
      }),
    ),
    deadlineMs: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'The whole answer within this time; the tenant\u2019s promise if absent.',
      }),
    ),
    conversations: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Requests belong to so many conversations, each to one by chance; to none if absent.',
      }),
    ),
    prefix: Type.Optional(
      Type.Object(
        {
          tokens: Type.Integer({ minimum: 1, description: 'Length of the shared beginning of the prompt.' }),
          groups: Type.Integer({ minimum: 1, description: 'How many different ones there are.' }),
          ratio: Type.Number({ minimum: 0, maximum: 1, description: 'Share of the requests that have one.' }),
        },
        { additionalProperties: false, description: 'Prompts that begin alike.' },
      ),
    ),
    retrieval: Type.Optional(StreamRetrievalSchema),
    questions: Type.Optional(QuestionsSchema),
    retry: Type.Optional(
      Type.Object(
        {
          kind: Type.Enum(['honour', 'at-once'], { description: 'Comes back when told, or at once.' }),
          triesMax: Type.Integer({ minimum: 1, maximum: 100, description: 'Gives up after so many tries.' }),
        },
        { additionalProperties: false, description: 'What a refused client does: waits as told, or does not listen.' },
      ),
    ),
    leaveAfterMs: Type.Optional(
      Type.Object(
        {
          min: Type.Number({ minimum: 0, description: 'At the soonest.' }),
          max: Type.Number({ minimum: 0, description: 'At the latest.' }),
          ratio: Type.Number({ minimum: 0, maximum: 1, description: 'Share of the requests.' }),
        },
        { additionalProperties: false, description: 'Clients that disconnect: how many, and when.' },
      ),
    ),
  },
  { additionalProperties: false },
)

export const FaultSchema = Type.Object(
  {
    kind: Type.Enum(
      [
        'replica-crash',
        'replica-hang',
        'replica-slow',
        'replica-errors',
        'replica-refusals',
        'replica-wrong',
        'pool-loss',
        'region-loss',
        'rolling-restart',
        'retrieval-slow',
        'retrieval-dead',
        'store-loss',
      ],
      {
        description:
          'What goes wrong, or is done on purpose: `rolling-restart` drains and restarts one replica after the other; ' +
          '`region-loss` takes a region\u2019s replicas, and its gateway where there are several; ' +
          '`retrieval-dead` never answers, `store-loss` refuses at once.',
      },
    ),
    target: Type.String({
      description:
        'A replica, or all replicas of a pool or a release (`MODEL@VERSION`), by id; a region for region-loss; ' +
        'for retrieval `store`, `embedder` or `retrieval`.',
    }),
    atS: seconds('When it happens.'),
    forS: seconds('How long it lasts; for rolling-restart, how long each replica is down.'),
    factor: Type.Optional(
      Type.Number({ minimum: 1, description: 'For replica-slow and retrieval-slow: how many times slower.' }),
    ),
    ratio: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description:
          'For replica-errors, replica-refusals and replica-wrong (on the holdout set): the share of its attempts; all of them if absent.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const PartSchema = Type.Object(
  {
    fromS: seconds('Start of the part: who arrives from here on belongs to it.'),
    toS: seconds('And its end.'),
  },
  { additionalProperties: false },
)

const TimesSchema = Type.Object(
  {
    variant: Type.String({ description: 'One of `variants`.' }),
    factor: Type.Number({ description: 'So many times what is found there.' }),
    plus: Type.Optional(Type.Number({ description: 'And so much on top.' })),
    path: Type.Optional(Type.String({ description: 'Where in the variant\u2019s report; the same path if absent.' })),
  },
  { additionalProperties: false },
)

export const ExpectationSchema = Type.Object(
  {
    what: Type.String({ description: 'A sentence: what should hold.' }),
    path: Type.String({
      description: 'Where in the report: `tenants.light.latency.ttft.p95`; `*` stands for every name.',
    }),
    atLeast: Type.Optional(Type.Number({ description: 'The value is not below this.' })),
    atMost: Type.Optional(Type.Number({ description: 'The value is not above this.' })),
    /** Compare with a path in a variant: value ≤ factor × that. */
    atMostTimes: Type.Optional(TimesSchema),
    atLeastTimes: Type.Optional(TimesSchema),
    of: Type.Optional(
      Type.String({
        description: 'Look at the report of this variant, instead of the scenario\u2019s own; `*`: at all of them.',
      }),
    ),
    except: Type.Optional(Type.Array(Type.String(), { description: 'Names that `*` leaves out.' })),
  },
  { additionalProperties: false },
)

export const TenantGroupSchema = Type.Object(
  {
    name: Type.String({ description: 'Its tenants are called NAME-1, NAME-2 …' }),
    count: Type.Integer({ minimum: 1, maximum: 100_000, description: 'How many tenants.' }),
    like: Type.Object(
      {},
      { additionalProperties: true, description: 'A tenant as in the configuration, without an id.' },
    ),
  },
  { additionalProperties: false },
)

const RegionsSchema = Type.Object(
  {
    roundTrips: Type.Array(
      Type.Object(
        {
          between: Type.Array(Type.String(), { minItems: 2, maxItems: 2, description: 'Two regions of pools.' }),
          ms: Type.Number({ minimum: 0, maximum: 60_000, description: 'There and back.' }),
        },
        { additionalProperties: false },
      ),
      { description: 'How far regions are from each other; 100 ms for those that are not named.' },
    ),
  },
  {
    additionalProperties: false,
    description: 'A gateway for every region that pools name, which know each other. Without it there is one gateway.',
  },
)

export const ScenarioSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, description: 'Its name in reports.' }),
    about: Type.String({ description: 'What it is about, in a sentence or two.' }),
    durationS: Type.Number({ exclusiveMinimum: 0, description: 'Requests arrive for so long.' }),
    warmupS: Type.Optional(seconds('Left out of the report.')),
    windowS: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'Width of the windows in the report; 5 s. Doubled where a run would have more than 1,024.',
      }),
    ),
    load: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'All arrival rates are multiplied by this, and the number of closed sessions; 1.',
      }),
    ),
    platform: Type.Object({}, { additionalProperties: true, description: 'Settings as in spillway.yaml.' }),
    regions: Type.Optional(RegionsSchema),
    retrieval: Type.Optional(RetrievalWorldSchema),
    groups: Type.Optional(Type.Array(TenantGroupSchema, { description: 'Many tenants that are alike.' })),
    workload: Type.Array(StreamSchema, { minItems: 1, description: 'Who sends what, when.' }),
    faults: Type.Optional(Type.Array(FaultSchema, { description: 'What goes wrong, in simulation.' })),
    variants: Type.Optional(
      Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), {
        description: 'The same scenario with some paths set otherwise, to compare with.',
      }),
    ),
    parts: Type.Optional(
      Type.Record(Type.String(), PartSchema, { description: 'Stretches of time that the report tells of apart.' }),
    ),
    expect: Type.Optional(Type.Array(ExpectationSchema, { description: 'What should hold; the exit code says.' })),
  },
  { additionalProperties: false },
)

export type Scenario = Static<typeof ScenarioSchema>
export type StreamSpec = Static<typeof StreamSchema>
export type Lengths = Static<typeof LengthsSchema>
export type Arrivals = Static<typeof ArrivalsSchema>
export type RatePhase = Static<typeof PhaseSchema>
export type Fault = Static<typeof FaultSchema>
export type Expectation = Static<typeof ExpectationSchema>
