import type { Static } from 'typebox'
import { Type } from '../base/schema.ts'
import type { HarmFindings, HarmKind } from '../domain/harm.ts'
import { type Checked, makeCheck } from './check.ts'
import { invalidRequest } from './openai-error.ts'
import { andThen } from './read-body.ts'

/**
 * `/v1/moderations` as OpenAI has it: texts in, thirteen categories each out. Categories that no model of ours knows are
 * false and 0, with no input types: nothing was applied to them. Pictures are taken and not looked at.
 */
export const MODERATION_INPUTS_MAX = 256

/** Names of OpenAI's models: clients send them, and all mean the models of this server. */
const MODERATION_MODELS = [
  'omni-moderation-latest',
  'omni-moderation-2024-09-26',
  'text-moderation-latest',
  'text-moderation-stable',
  'text-moderation-007',
] as const

const TextPart = Type.Object({ type: Type.Literal('text'), text: Type.String() })
const PicturePart = Type.Object({
  type: Type.Literal('image_url'),
  image_url: Type.Object({ url: Type.String() }),
})

export const ModerationBody = Type.Object({
  input: Type.Union(
    [
      Type.String(),
      Type.Array(Type.String(), { minItems: 1, maxItems: MODERATION_INPUTS_MAX }),
      Type.Array(Type.Union([TextPart, PicturePart]), { minItems: 1, maxItems: MODERATION_INPUTS_MAX }),
    ],
    {
      description: `A text, up to ${MODERATION_INPUTS_MAX} texts, or the parts of one input; pictures are not looked at.`,
    },
  ),
  model: Type.Optional(
    Type.Union([Type.String(), Type.Null()], { description: `One of ${MODERATION_MODELS.join(', ')}.` }),
  ),
})

export type ModerationBody = Static<typeof ModerationBody>

const checkShape = makeCheck(ModerationBody)

export const checkModeration = (json: unknown): Checked<ModerationBody> => andThen(checkShape(json), checkModel)

function checkModel(body: ModerationBody): Checked<ModerationBody> {
  const { model } = body
  if (model === undefined || model === null || (MODERATION_MODELS as readonly string[]).includes(model)) {
    return { kind: 'ok', value: body }
  }
  const message = `Invalid value for 'model'. Moderation has ${MODERATION_MODELS.join(', ')}.`
  return { kind: 'fault', fault: invalidRequest(message, 'model', 'invalid-value') }
}

/** One list of texts per result: parts make one result, texts one each. */
export function moderatedInputs({ input }: ModerationBody): readonly (readonly string[])[] {
  if (typeof input === 'string') return [[input]]
  if (typeof input[0] === 'string') return (input as readonly string[]).map((text) => [text])
  return [(input as readonly Static<typeof TextPart>[]).flatMap((part) => (part.type === 'text' ? [part.text] : []))]
}

/** OpenAI's categories in its order, and which kind of harm each is; absent: nothing here knows it. */
const CATEGORIES: Readonly<Record<string, HarmKind | undefined>> = {
  harassment: 'harassment',
  'harassment/threatening': undefined,
  sexual: 'sexual',
  hate: 'hate',
  'hate/threatening': undefined,
  illicit: undefined,
  'illicit/violent': undefined,
  'self-harm/intent': undefined,
  'self-harm/instructions': undefined,
  'self-harm': 'self-harm',
  'sexual/minors': undefined,
  violence: 'violence',
  'violence/graphic': undefined,
}

/** `findings`: of each text of one input. An input without text has nothing applied to it. */
export function moderationResult(findings: readonly HarmFindings[]): object {
  const categories: Record<string, boolean> = {}
  const scores: Record<string, number> = {}
  const types: Record<string, string[]> = {}
  for (const [category, kind] of Object.entries(CATEGORIES)) {
    const found = kind === undefined ? [] : findings.map((finding) => finding[kind])
    categories[category] = found.some(({ isFound }) => isFound)
    scores[category] = found.reduce((most, { score }) => Math.max(most, score), 0)
    types[category] = found.length > 0 ? ['text'] : []
  }
  return {
    flagged: Object.values(categories).some((isFound) => isFound),
    categories,
    category_scores: scores,
    category_applied_input_types: types,
  }
}

export function moderationAnswer(id: string, { model }: ModerationBody, results: readonly object[]): object {
  return { id: `modr-${id}`, model: model ?? MODERATION_MODELS[0], results }
}
