import type { Static, TSchema } from 'typebox'
import { isValid } from '../base/check-schema.ts'
import { faultsOf, type SchemaFault } from '../base/schema-faults.ts'
import { invalidRequest, type WireFault } from './openai-error.ts'

/**
 * Checks the shape of a body and names the wrong parameter. A valid body costs one check (under 1 µs for a chat); the
 * words of the refusal are searched for only when it fails.
 */
export type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'fault'; readonly fault: WireFault }

export function makeCheck<S extends TSchema>(schema: S): (body: unknown) => Checked<Static<S>> {
  return (body) =>
    isValid(schema, body)
      ? { kind: 'ok', value: body }
      : { kind: 'fault', fault: describe(body, faultsOf(schema, body)) }
}

function describe(body: unknown, problems: readonly SchemaFault[]): WireFault {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return invalidRequest('The request body must be a JSON object.', null)
  }
  const problem = furthest(problems)
  if (problem === undefined) return invalidRequest('The request body is not valid.', null)
  if (problem.keyword === 'required') {
    const missing = (problem.params as { requiredProperties?: string[] }).requiredProperties?.[0] ?? ''
    const param = paramOf(`${problem.instancePath}/${missing}`)
    return invalidRequest(`Missing required parameter: '${param}'.`, param, 'missing-required-parameter')
  }
  const param = paramOf(problem.instancePath)
  if (problem.keyword === 'minItems') {
    return invalidRequest(`Invalid '${param}': empty array. Expected at least one element.`, param, 'empty-array')
  }
  if (problem.keyword === 'maxItems') {
    const { limit } = problem.params as { limit?: number }
    return invalidRequest(`Invalid '${param}': at most ${limit} elements are allowed.`, param, 'invalid-value')
  }
  // An object without further properties has a schema for them that nothing fits.
  if (problem.keyword === 'boolean') return invalidRequest(`Unknown parameter: '${param}'.`, param, 'invalid-value')
  const wanted = alternatives(problems, problem.instancePath)
  const code = wanted.length > 0 ? 'invalid-type' : 'invalid-value'
  return invalidRequest(
    `Invalid '${param}': it ${wanted.length > 0 ? `must be ${wanted.join(' or ')}` : wordsOf(problem)}.`,
    param,
    code,
  )
}

/**
 * The error names the first wrong parameter. A failed union reports every branch; the branch that got furthest into the
 * value is the one that the client meant.
 */
function furthest(problems: readonly SchemaFault[]): SchemaFault | undefined {
  let chosen: SchemaFault | undefined
  for (const problem of problems) {
    if (problem.keyword === 'anyOf') continue
    if (chosen === undefined) chosen = problem
    else if (rootOf(problem.instancePath) === rootOf(chosen.instancePath) && isFurther(problem, chosen))
      chosen = problem
  }
  return chosen
}

/** A list of the wrong length is a list: that branch got further than one that wanted a text. */
function isFurther(problem: SchemaFault, chosen: SchemaFault): boolean {
  const further = depth(problem) - depth(chosen)
  return further > 0 || (further === 0 && chosen.keyword === 'type' && problem.keyword === 'maxItems')
}

function alternatives(problems: readonly SchemaFault[], path: string): string[] {
  const wanted = new Set<string>()
  for (const problem of problems) {
    if (problem.instancePath !== path) continue
    const params = problem.params as { type?: string; allowedValue?: unknown; allowedValues?: unknown[] }
    if (problem.keyword === 'type' && params.type !== undefined && params.type !== 'null') wanted.add(aOf(params.type))
    if (problem.keyword === 'const') wanted.add(JSON.stringify(params.allowedValue ?? params.allowedValues))
  }
  return [...wanted]
}

function wordsOf({ keyword, params, message }: SchemaFault): string {
  const { allowedValues = [] } = params as { allowedValues?: readonly unknown[] }
  return keyword === 'enum' ? `must be one of ${allowedValues.join(', ')}` : message
}

const aOf = (type: string): string => (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`)
const depth = (problem: SchemaFault): number =>
  problem.instancePath.split('/').length + (problem.keyword === 'required' ? 1 : 0)
const rootOf = (path: string): string => path.split('/')[1] ?? ''

/** `/messages/0/role` → `messages[0].role`, the way OpenAI names parameters. */
function paramOf(path: string): string {
  let out = ''
  for (const part of path.split('/').slice(1)) {
    if (/^\d+$/.test(part)) out += `[${part}]`
    else out += out === '' ? part : `.${part}`
  }
  return out.length > PARAM_LENGTH_MAX ? `${out.slice(0, PARAM_LENGTH_MAX)}…` : out
}

/** A client may send a name of any length; the answer does not repeat it. */
const PARAM_LENGTH_MAX = 200
