import type { TProperties } from 'typebox'
import { Type } from '../base/schema.ts'
import { item, name, section } from './schema-fields.ts'

/**
 * What is screened, and what follows from a finding. The same words for the platform's default and for one tenant. A
 * word without a direction (`pii: redact`) holds for what goes in and what comes out; `input` and `output` say otherwise
 * for one of them.
 */
const REWRITING = {
  pii: 'Personal data with a known form: e-mail addresses, phone numbers, cards, bank accounts, identity numbers, addresses of machines.',
  secrets: 'API keys, tokens and private keys.',
  names:
    'Names and postal addresses, by a small tagger. It finds fewer than half of them, and costs more than the others.',
  patterns: 'The expressions of `ownPatterns`.',
} as const

const JUDGING = {
  injection: 'Prompts that want to overrule instructions, and jailbreaks. Input only.',
  passageInjection: 'Instructions inside passages and tool results. Input only.',
  toxicity: 'Insults, hate and threats.',
  abuse: 'A key whose requests are blocked again and again. Input only.',
  guard: 'The judgement of the model in `guardModel`. Input only.',
} as const

/** What both kinds of screens can do with a finding. */
const JUDGED = ['off', 'observe', 'flag', 'block'] as const
const REWRITTEN = ['off', 'observe', 'flag', 'redact', 'block'] as const

const WORDS = 'Action: `observe` counts a finding, `flag` also tells the client'

const rewriting = (what: string) =>
  Type.Optional(
    Type.Enum([...REWRITTEN], { description: `${what} ${WORDS}, \`redact\` replaces the place, \`block\` refuses.` }),
  )
const judging = (what: string) =>
  Type.Optional(Type.Enum([...JUDGED], { description: `${what} ${WORDS}, \`block\` refuses.` }))

const SCREEN_ACTIONS = {
  pii: rewriting(REWRITING.pii),
  secrets: rewriting(REWRITING.secrets),
  names: rewriting(REWRITING.names),
  patterns: rewriting(REWRITING.patterns),
  injection: judging(JUDGING.injection),
  passageInjection: judging(JUDGING.passageInjection),
  toxicity: judging(JUDGING.toxicity),
  abuse: judging(JUDGING.abuse),
  guard: judging(JUDGING.guard),
}

const inDirection = <const T extends TProperties>(properties: T, description: string) =>
  Type.Optional(item(properties, description))

const {
  injection: _injection,
  passageInjection: _passages,
  abuse: _abuse,
  guard: _guard,
  ...OUTPUT_ACTIONS
} = SCREEN_ACTIONS

const scoreMin = (screen: string) =>
  Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description: `Score from which on ${screen} is a finding; the screen’s own if absent.`,
    }),
  )

const onFailure = (screen: string) =>
  Type.Optional(
    Type.Enum(['open', 'closed', 'degrade'], {
      description: `What follows when ${screen} cannot say: the request is served without it (\`open\`), refused (\`closed\`), or judged by the screens below it (\`degrade\`). \`closed\` if absent and its action is \`block\`, else \`open\`.`,
    }),
  )

const GuardModelSchema = item(
  {
    model: name('Model that is asked, by its name in `models`.'),
    route: Type.Enum(['chat', 'moderations'], {
      default: 'chat',
      description: 'How it is asked: as `/v1/chat/completions` or as `/v1/moderations`.',
    }),
    greyFrom: Type.Number({
      default: 0.3,
      minimum: 0,
      maximum: 1,
      description: 'Lowest score of the embedded models for which the guard model is asked.',
    }),
    greyTo: Type.Number({
      default: 0.9,
      minimum: 0,
      maximum: 1,
      description: 'Highest score of the embedded models for which the guard model is asked.',
    }),
    timeoutMs: Type.Integer({
      default: 500,
      minimum: 1,
      maximum: 60_000,
      description: 'Time in which the guard model must answer, in milliseconds; then it cannot say.',
    }),
  },
  'The guard model: a model of this platform that judges where the embedded models are in doubt.',
)

const OwnPatternSchema = item(
  {
    name: name('Name of the pattern: the category of its findings, and the word in its placeholder.'),
    expression: Type.String({
      minLength: 1,
      maxLength: 1_000,
      description:
        'Regular expression for an engine of linear time: no look-around, no reference back, no anchors but \\b; (?i) at the start ignores case. *, + and {n,} repeat 32 times at most, and a match has 128 characters at most.',
    }),
  },
  'An expression of your own.',
)

const SCREENING_SETTINGS = {
  ...SCREEN_ACTIONS,
  input: inDirection(SCREEN_ACTIONS, 'Screens of what clients send, where they differ from both directions.'),
  output: inDirection(OUTPUT_ACTIONS, 'Screens of what models answer, where they differ from both directions.'),
  scoreMin: inDirection(
    {
      injection: scoreMin('`injection`'),
      passageInjection: scoreMin('`passageInjection`'),
      toxicity: scoreMin('`toxicity`'),
      abuse: scoreMin('`abuse`'),
      guard: scoreMin('`guard`'),
    },
    'Scores from which on a judgement is a finding.',
  ),
  onFailure: inDirection(
    {
      names: onFailure('`names`'),
      injection: onFailure('`injection`'),
      passageInjection: onFailure('`passageInjection`'),
      toxicity: onFailure('`toxicity`'),
      abuse: onFailure('`abuse`'),
      guard: onFailure('`guard`'),
    },
    'What follows when a screen cannot say.',
  ),
  hold: Type.Optional(
    Type.String({
      pattern: '^(none|entities|whole|sentences:[1-9][0-9]{0,3})$',
      description:
        'How much of an answer is held back until it has been screened: nothing (`none`), what could still become a finding (`entities`, the default), up to the end of a sentence and at most k tokens (`sentences:k`), or all of it (`whole`).',
    }),
  ),
  join: Type.Optional(
    Type.Enum(['gate', 'overlap'], {
      description:
        'Where a request waits for its judgement: before its turn (`gate`, the default), or on pools of your own before its first token (`overlap`).',
    }),
  ),
  reversible: Type.Optional(
    Type.Boolean({
      description:
        'Whether a redacted value is a pseudonym (`<EMAIL_3f9c…>`) that the answer gets back. If false, it is gone (`<EMAIL>`).',
    }),
  ),
  binary: Type.Optional(
    Type.Enum(['pass', 'refuse'], {
      description:
        'What becomes of pictures, audio and files, which no screen can read: passed on and marked `unscreened` (`pass`, the default), or refused.',
    }),
  ),
  allowed: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      maxItems: 256,
      uniqueItems: true,
      description:
        'Texts that are never a finding, exactly as they are written: your own support address, for example.',
    }),
  ),
  ownPatterns: Type.Optional(
    Type.Array(OwnPatternSchema, { maxItems: 64, description: 'Expressions of your own, for the screen `patterns`.' }),
  ),
  guardModel: Type.Optional(GuardModelSchema),
}

export const ScreeningSchema = section(
  SCREENING_SETTINGS,
  'Screening of every tenant that does not say otherwise; nothing is screened unless a screen is named.',
)

export const TenantScreeningSchema = item(
  SCREENING_SETTINGS,
  'Screening of the tenant: what is named here in place of `screening`.',
)
