import type { Static } from 'typebox'
import { Type } from '../base/schema.ts'
import { type Checked, makeCheck } from './check.ts'
import { invalidRequest } from './openai-error.ts'
import { andThen, readJson } from './read-body.ts'
import { JSON_BOUNDS } from './scan-json.ts'
import { SpillwayOptions } from './schemas.ts'

/**
 * Requests in tensors, as clients of the Open Inference Protocol v2 send them in JSON: named inputs with a datatype, a
 * shape, and data in row-major order, flat or nested. Binary tensors beside the JSON are an extension that is not
 * supported.
 */
const DATATYPES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BYTES',
] as const

const Parameters = Type.Optional(Type.Record(Type.String(), Type.Unknown()))

/**
 * Rows of one batch: OpenAI's own bound for inputs. Each row becomes an object of ours, so a number in a shape must not
 * be able to ask for more of them than a body can hold.
 */
export const ROWS_MAX = 2_048

/** A dimension of zero would make any number of rows out of no data. */
const Dimension = Type.Integer({ minimum: 1, maximum: JSON_BOUNDS.valuesMax })

const InputTensor = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 256 }),
  shape: Type.Array(Dimension, { minItems: 1, maxItems: 8, description: `At most ${ROWS_MAX} rows.` }),
  datatype: Type.Enum([...DATATYPES]),
  data: Type.Array(Type.Unknown(), { description: 'Row by row, flat or nested.' }),
  parameters: Parameters,
})

export const TensorBody = Type.Object({
  id: Type.Optional(Type.String({ maxLength: 256 })),
  inputs: Type.Array(InputTensor, { minItems: 1, maxItems: 64 }),
  outputs: Type.Optional(
    Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), parameters: Parameters }), { maxItems: 64 }),
  ),
  parameters: Parameters,
  spillway: Type.Optional(SpillwayOptions),
})

export type TensorBody = Static<typeof TensorBody>
export type Tensor = TensorBody['inputs'][number]

const checkShape = makeCheck(TensorBody)

export const readTensors = (bytes: Buffer): Checked<TensorBody> =>
  andThen(andThen(readJson(bytes), checkShape), checkData)

function checkData(body: TensorBody): Checked<TensorBody> {
  for (const [i, input] of body.inputs.entries()) {
    const problem = problemOf(input)
    if (problem === undefined) continue
    const param = `inputs[${i}].data`
    return { kind: 'fault', fault: invalidRequest(`Invalid '${param}': ${problem}.`, param, 'invalid-value') }
  }
  return { kind: 'ok', value: body }
}

function problemOf(input: Tensor): string | undefined {
  const rows = input.shape[0] ?? 1
  if (rows > ROWS_MAX) return `at most ${ROWS_MAX} rows are allowed, but the shape has ${rows}`
  const values = valuesOf(input)
  const wanted = input.shape.reduce((product, size) => product * size, 1)
  if (values.length !== wanted) {
    return `shape [${input.shape.join(', ')}] has ${wanted} elements, but there are ${values.length}`
  }
  const isRight = CHECKS[kindOf(input.datatype)]
  return values.every(isRight) ? undefined : `an element is not ${WORDS[kindOf(input.datatype)]} (${input.datatype})`
}

const CHECKS = {
  text: (value: unknown): boolean => typeof value === 'string',
  truth: (value: unknown): boolean => typeof value === 'boolean',
  whole: (value: unknown): boolean => Number.isInteger(value),
  number: (value: unknown): boolean => typeof value === 'number',
} as const

const WORDS = { text: 'a text', truth: 'true or false', whole: 'a whole number', number: 'a number' } as const

function kindOf(datatype: Tensor['datatype']): keyof typeof CHECKS {
  if (datatype === 'BYTES') return 'text'
  if (datatype === 'BOOL') return 'truth'
  return datatype.startsWith('FP') ? 'number' : 'whole'
}

/** All elements in order, for any nesting; at most as deep as the shape is long. */
export function valuesOf({ data, shape }: Pick<Tensor, 'data' | 'shape'>): readonly unknown[] {
  return Array.isArray(data[0]) ? (data.flat(shape.length) as unknown[]) : data
}

/** The name of a tensor that is a prompt in token ids, by its datatype and its name. */
export const tokenTensorIn = ({ inputs }: TensorBody): string | undefined =>
  inputs.find(({ name, datatype }) => /^U?INT(?:16|32|64)$/.test(datatype) && /token|(?:^|_)ids?$/i.test(name))?.name

/** A patch of 16 × 16 pixels in three colours: one token of a vision transformer. */
const ELEMENTS_PER_TOKEN = 768

/**
 * The work of a request in tokens, row by row: the rows of a batch are answered side by side, and each must fit alone.
 * Texts are counted as texts, numbers by the patch.
 */
export function rowTokens({ inputs }: TensorBody, estimateTokens: (text: string) => number): number[] {
  let total = 0
  let rows = 1
  for (const input of inputs) {
    rows = Math.max(rows, input.shape[0] ?? 1)
    const values = valuesOf(input)
    if (input.datatype === 'BYTES') for (const text of values) total += estimateTokens(text as string)
    else total += values.length / ELEMENTS_PER_TOKEN
  }
  return Array.from({ length: rows }, () => Math.max(1, Math.ceil(total / rows)))
}
