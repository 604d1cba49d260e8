import type { Static } from 'typebox'
import { Type } from '../../base/schema.ts'
import { QuestionsSchema, RetrievalWorldSchema, StreamRetrievalSchema } from './scenario-retrieval.ts'
import { ColdStartSchema } from './scenario-scaling.ts'
import { ScreensSchema } from './scenario-screens.ts'

/**
 * A scenario describes a workload: which tenant sends what, when requests arrive, what goes wrong, and what should hold.
 * The `platform` part is a configuration for `spillway serve`, as in production; only its pools become simulated ones.
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
      min: Type.Integer({ minimum: 1, description: 'Lower bound.' }),
      max: Type.Integer({ minimum: 1, description: 'Upper bound.' }),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      kind: Type.Literal('quantiles'),
      points: Type.Array(Type.Array(Type.Number({ minimum: 0 }), { minItems: 2, maxItems: 2 }), {
        minItems: 2,
        description: 'Pairs of quantile and tokens, ascending; lengths between two pairs are interpolated.',
      }),
    },
    { additionalProperties: false },
  ),
])

/** When requests arrive. A `closed` stream is a number of sessions; a session sends its next request after the answer. */
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
      sessions: Type.Integer({ minimum: 1, description: 'Number of clients, each with one request at a time.' }),
      thinkS: Type.Number({ minimum: 0, description: 'Mean time between an answer and the next request.' }),
    },
    { additionalProperties: false },
  ),
])

export const PhaseSchema = Type.Object(
  {
    fromS: seconds('Start of the phase.'),
    toS: seconds('End of the phase.'),
    factor: Type.Number({ minimum: 0, description: 'Multiplies the rate.' }),
    toFactor: Type.Optional(Type.Number({ minimum: 0, description: 'A ramp: the factor at the end of the phase.' })),
  },
  { additionalProperties: false },
)

export const StreamSchema = Type.Object(
  {
    tenant: Type.String({ description: 'A tenant, or a group: then each tenant of the group sends such a stream.' }),
    model: Type.String({ description: 'A model of the platform, or one of its aliases.' }),
    region: Type.Optional(
      Type.String({
        description: 'Region of the clients, whose gateway they use; the first region if absent.',
      }),
    ),
    gateways: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1 }), {
        minItems: 1,
        description:
          'Numbers of the gateways that the stream\u2019s clients use, counted from 1, where several share a fleet.',
      }),
    ),
    band: Type.Optional(
      Type.Enum(['interactive', 'standard', 'offline'], { description: 'Priority class; `standard` if absent.' }),
    ),
    bids: Type.Optional(Type.Array(Type.Number(), { minItems: 1, description: 'Each request draws one of these.' })),
    arrivals: ArrivalsSchema,
    fromS: Type.Optional(seconds('Start of the stream.')),
    toS: Type.Optional(seconds('End of the stream.')),
    phases: Type.Optional(Type.Array(PhaseSchema, { description: 'Spikes and ramps.' })),
    prompt: LengthsSchema,
    output: LengthsSchema,
    maxTokens: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1 }), Type.Literal('unset'), Type.Literal('exact')], {
        description:
          'The `max_tokens` of the request, where answers are cut; `unset` by default. `exact`: the true length of the answer, as `bench` sends it.',
      }),
    ),
    deadlineMs: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'Deadline of the whole answer; the tenant\u2019s promise if absent.',
      }),
    ),
    conversations: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Number of conversations; each request belongs to one at random. Absent: requests belong to none.',
      }),
    ),
    prefix: Type.Optional(
      Type.Object(
        {
          tokens: Type.Integer({ minimum: 1, description: 'Length of the shared beginning of the prompt.' }),
          groups: Type.Integer({ minimum: 1, description: 'Number of different beginnings.' }),
          ratio: Type.Number({ minimum: 0, maximum: 1, description: 'Share of the requests with a shared beginning.' }),
        },
        { additionalProperties: false, description: 'Prompts that begin alike.' },
      ),
    ),
    retrieval: Type.Optional(StreamRetrievalSchema),
    questions: Type.Optional(QuestionsSchema),
    retry: Type.Optional(
      Type.Object(
        {
          kind: Type.Enum(['honour', 'at-once'], { description: 'Comes back after Retry-After, or at once.' }),
          triesMax: Type.Integer({ minimum: 1, maximum: 100, description: 'Gives up after this many tries.' }),
        },
        {
          additionalProperties: false,
          description: 'What a client does after a refusal; without it the client gives up.',
        },
      ),
    ),
    leaveAfterMs: Type.Optional(
      Type.Object(
        {
          min: Type.Number({ minimum: 0, description: 'Earliest disconnect.' }),
          max: Type.Number({ minimum: 0, description: 'Latest disconnect.' }),
          ratio: Type.Number({
            minimum: 0,
            maximum: 1,
            description: 'Share of the requests whose client disconnects.',
          }),
        },
        { additionalProperties: false, description: 'Clients that disconnect before the answer ends.' },
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
        'replica-freeze',
        'replica-slow',
        'replica-errors',
        'replica-refusals',
        'replica-wrong',
        'pool-loss',
        'region-loss',
        'rolling-restart',
        'spot-notice',
        'retrieval-slow',
        'retrieval-dead',
        'store-loss',
        'gateway-loss',
        'gateway-pause',
        'gateway-cut',
        'gateway-deaf',
        'lease-store-stop',
        'lease-store-wipe',
        'lease-store-clock',
      ],
      {
        description:
          'The fault, or a planned change: `rolling-restart` drains and restarts one replica after the other; ' +
          '`spot-notice` announces the end of spot replicas, which are gone 30 s later and back after `forS`; ' +
          '`region-loss` removes a region\u2019s replicas and its gateway where there are several; `replica-freeze` ' +
          'answers probes without progress; `retrieval-dead` never answers, `store-loss` refuses at once. Of ' +
          'gateways that share a fleet: `gateway-loss` kills one, `gateway-pause` stops it for a while, ' +
          '`gateway-cut` cuts it off from the lease store, `gateway-deaf` loses the store\u2019s answers to it; ' +
          '`lease-store-stop`, `-wipe`, `-clock` stop it, empty it, set its clock by `stepS`.',
      },
    ),
    target: Type.String({
      description:
        'Id of a replica, or of a pool or release (`MODEL@VERSION`) for all its replicas; a region for region-loss; ' +
        '`store`, `embedder` or `retrieval`; `gateway-1`, `gateway-2` \u2026 or `*` for gateways; `lease-store`.',
    }),
    atS: seconds('Start of the fault.'),
    forS: seconds('Duration of the fault; for rolling-restart, the time that each replica is down.'),
    factor: Type.Optional(
      Type.Number({ minimum: 1, description: 'For replica-slow and retrieval-slow: how many times slower.' }),
    ),
    stepS: Type.Optional(
      Type.Number({ description: 'For lease-store-clock: how far the clock is set forward; back if below 0.' }),
    ),
    ratio: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description:
          'For replica-errors, replica-refusals and replica-wrong (on the holdout set): share of the attempts affected; all if absent.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const PartSchema = Type.Object(
  {
    fromS: seconds('Start of the part: requests that arrive from here on belong to it.'),
    toS: seconds('End of the part.'),
  },
  { additionalProperties: false },
)

const TimesSchema = Type.Object(
  {
    variant: Type.String({ description: 'One of `variants`.' }),
    factor: Type.Number({ description: 'Multiplies the variant\u2019s value.' }),
    plus: Type.Optional(Type.Number({ description: 'Added to that product.' })),
    path: Type.Optional(Type.String({ description: 'Path in the variant\u2019s report; the same path if absent.' })),
  },
  { additionalProperties: false },
)

export const ExpectationSchema = Type.Object(
  {
    what: Type.String({ description: 'What should hold, as a sentence.' }),
    path: Type.String({
      description: 'Path in the report, as `tenants.light.latency.ttft.p95`; `*` stands for every name.',
    }),
    atLeast: Type.Optional(Type.Number({ description: 'Lower bound of the value.' })),
    atMost: Type.Optional(Type.Number({ description: 'Upper bound of the value.' })),
    /** Compare with a path in a variant: value ≤ factor × that. */
    atMostTimes: Type.Optional(TimesSchema),
    atLeastTimes: Type.Optional(TimesSchema),
    of: Type.Optional(
      Type.String({
        description: 'Check the report of this variant instead of the scenario\u2019s own; `*` checks all variants.',
      }),
    ),
    except: Type.Optional(Type.Array(Type.String(), { description: 'Names that `*` leaves out.' })),
  },
  { additionalProperties: false },
)

export const TenantGroupSchema = Type.Object(
  {
    name: Type.String({ description: 'Name of the group; its tenants are NAME-1, NAME-2 …' }),
    count: Type.Integer({ minimum: 1, maximum: 100_000, description: 'Number of tenants.' }),
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
          ms: Type.Number({ minimum: 0, maximum: 60_000, description: 'Round trip between the two.' }),
        },
        { additionalProperties: false },
      ),
      { description: 'Round trips between regions; 100 ms between regions that are not listed.' },
    ),
  },
  {
    additionalProperties: false,
    description: 'Simulates one gateway for each region of the pools, as peers. Absent: one gateway for all pools.',
  },
)

const GatewaysSchema = Type.Object(
  {
    count: Type.Integer({ minimum: 1, maximum: 64, description: 'Number of gateways.' }),
    shares: Type.Optional(
      Type.Array(Type.Number({ minimum: 0 }), {
        minItems: 1,
        description: 'Part of the requests that each gateway gets; equal parts if absent.',
      }),
    ),
    homes: Type.Optional(
      Type.Boolean({ description: 'Each tenant uses only some of the gateways, one at least, drawn by the seed.' }),
    ),
    way: Type.Optional(
      Type.Enum(['leased', 'static', 'fallback'], {
        description:
          '`leased` is what Spillway does. For comparison: `static` gives each gateway its part of limits and room for ' +
          'ever, `fallback` uses the whole of them at each gateway while the lease store is away.',
      }),
    ),
    delayMs: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1_000, description: 'Longest way to the lease store; 1 ms.' }),
    ),
    lossRatio: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Share of the calls that are lost; 0.' }),
    ),
    lateRatio: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Share of the calls carried out up to 3 s late; 0.' }),
    ),
    forgetS: Type.Optional(
      Type.Number({ minimum: 1, description: 'The lease store forgets a gateway after this silence; 600 s.' }),
    ),
    leaveS: Type.Optional(
      seconds('A supervisor tells the lease store of a lost gateway after this long; never if absent.'),
    ),
  },
  {
    additionalProperties: false,
    description: 'Simulates several gateways that share one fleet and one lease store. Absent: one gateway.',
  },
)

export const ScenarioSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, description: 'Name in reports.' }),
    about: Type.String({ description: 'One or two sentences about the scenario.' }),
    durationS: Type.Number({ exclusiveMinimum: 0, description: 'Time in which requests arrive.' }),
    warmupS: Type.Optional(seconds('Time at the start that the report leaves out.')),
    windowS: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'Width of the windows in the report; 5 s. Doubled until a run has at most 1,024 windows.',
      }),
    ),
    load: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'Multiplies all arrival rates and the number of closed sessions, or the requests of a trace; 1.',
      }),
    ),
    traffic: Type.Optional(
      Type.Record(Type.String(), Type.Number({ minimum: 0, maximum: 1_000 }), {
        description: 'Multiplies the requests of single tenants in a trace, as `acme: 0.5`; 1.',
      }),
    ),
    coldStartS: Type.Optional(ColdStartSchema),
    platform: Type.Object({}, { additionalProperties: true, description: 'Settings as in spillway.yaml.' }),
    regions: Type.Optional(RegionsSchema),
    gateways: Type.Optional(GatewaysSchema),
    retrieval: Type.Optional(RetrievalWorldSchema),
    screens: Type.Optional(ScreensSchema),
    groups: Type.Optional(Type.Array(TenantGroupSchema, { description: 'Groups of tenants with equal settings.' })),
    workload: Type.Array(StreamSchema, {
      minItems: 1,
      description: 'Streams of requests: which tenant sends what, and when.',
    }),
    faults: Type.Optional(Type.Array(FaultSchema, { description: 'Faults, in simulation only.' })),
    variants: Type.Optional(
      Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), {
        description: 'The same scenario with other values at some paths, for comparison.',
      }),
    ),
    parts: Type.Optional(
      Type.Record(Type.String(), PartSchema, { description: 'Stretches of time with a report of their own.' }),
    ),
    expect: Type.Optional(
      Type.Array(ExpectationSchema, { description: 'What should hold; the exit code is 1 if one does not.' }),
    ),
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
