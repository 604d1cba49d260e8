import { CALL_ROUTES, type KeyTerms, type TermsPatch } from '../../domain/key-terms.ts'
import { SPEND_HOURS_MAX, SPEND_MAX, spendKeyOf } from '../../domain/spend-key.ts'
import { type Allowance, BANDS, type RateLimit, type SpendLimit } from '../../domain/tenant.ts'
import { parseRange } from './client-range.ts'
import { TERMS_PARTS } from './clip-terms.ts'
import { quoted } from './plain-text.ts'

/**
 * Are these values of terms, whoever wants them?
 *
 * The layers above check the shape of what they read. This file checks the meaning, so that no caller can store terms
 * that compare wrongly: NaN is neither more nor less than any limit, and a range that cannot be read contains nothing.
 *
 * Example: `{ models: ['a', 'a'] }` has a problem at `models`; `{ models: [] }` has none, and allows no model.
 */
export interface ValueProblem {
  readonly param: string
  readonly because: string
}

/** Entries of one list at most, and characters of one entry: every request of the key may look at all of them. */
const MODELS_MAX = 256
const RANGES_MAX = 64
const MODEL_LENGTH_MAX = 128

/** Model names as the configuration file allows them: legal in headers, metric labels and log lines. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]*$/

/** The largest limit, as in the configuration file. */
const RATE_MAX = 1e12
/** What a bucket can hold (`policy/budgets/token-bucket.ts`), rounded down. */
const RATE_BURST_MAX = 150_000_000
const CONCURRENCY_MAX = 1_000_000
const BUDGETS_MAX = 16
const MARKS_MAX = 8

export function patchProblem(patch: TermsPatch): ValueProblem | undefined {
  const { notBeforeAtMs, expiresAtMs, models, routes, bands, clientRanges, allowance, canInfer, canManage } = patch
  return (
    instantProblem('notBeforeAtMs', notBeforeAtMs) ??
    instantProblem('expiresAtMs', expiresAtMs) ??
    listProblem('models', models, MODELS_MAX, modelProblem) ??
    listProblem('routes', routes, CALL_ROUTES.length, oneOf(CALL_ROUTES)) ??
    listProblem('bands', bands, BANDS.length, oneOf(BANDS)) ??
    listProblem('clientRanges', clientRanges, RANGES_MAX, rangeProblem) ??
    (allowance === undefined || allowance === null ? undefined : allowanceProblem(allowance)) ??
    flagProblem('canInfer', canInfer) ??
    flagProblem('canManage', canManage)
  )
}

/** Terms that never hold are a mistake. */
export function wholeProblem({ notBeforeAtMs, expiresAtMs }: KeyTerms): ValueProblem | undefined {
  if (notBeforeAtMs === undefined || expiresAtMs === undefined || notBeforeAtMs < expiresAtMs) return undefined
  return { param: 'terms.expiresAtMs', because: 'is not after notBeforeAtMs, so the terms would never hold' }
}

/** Terms after a patch. */
export function patchedTerms(terms: KeyTerms, patch: TermsPatch): KeyTerms {
  return withoutNulls({ ...terms, ...patch })
}

/** The parts that a patch asks for by name. */
export function namedTerms(patch: TermsPatch): KeyTerms {
  return withoutNulls(patch)
}

function withoutNulls(patch: TermsPatch): KeyTerms {
  const parts = TERMS_PARTS.flatMap((part) => (patch[part] === null || patch[part] === undefined ? [] : [part]))
  return Object.fromEntries(parts.map((part) => [part, patch[part]])) as KeyTerms
}

export const isNumberIn = (value: number, above: number, max: number): boolean =>
  Number.isFinite(value) && value > above && value <= max

function instantProblem(part: string, value: number | null | undefined): ValueProblem | undefined {
  if (value === null || value === undefined || (Number.isSafeInteger(value) && value >= 0)) return undefined
  return { param: `terms.${part}`, because: 'is no instant: give whole milliseconds since 1970' }
}

function flagProblem(part: string, value: boolean | null | undefined): ValueProblem | undefined {
  if (value === null || value === undefined || typeof value === 'boolean') return undefined
  return { param: `terms.${part}`, because: 'is neither true nor false' }
}

function listProblem(
  part: string,
  list: readonly string[] | null | undefined,
  max: number,
  wrongWith: (entry: string) => string | undefined,
): ValueProblem | undefined {
  if (list === null || list === undefined) return undefined
  const param = `terms.${part}`
  if (list.length > max) return { param, because: `has ${list.length} entries; ${max} are the most` }
  if (new Set(list).size < list.length) return { param, because: 'has an entry twice' }
  const wrong = list.find((entry) => wrongWith(entry) !== undefined)
  return wrong === undefined ? undefined : { param, because: `has ${quoted(wrong)}, which ${wrongWith(wrong)}` }
}

const modelProblem = (name: string): string | undefined =>
  name.length <= MODEL_LENGTH_MAX && MODEL_NAME.test(name) ? undefined : 'is not the name of a model'

const oneOf =
  (words: readonly string[]) =>
  (word: string): string | undefined =>
    words.includes(word) ? undefined : `is none of ${words.join(', ')}`

const rangeProblem = (text: string): string | undefined => {
  const range = parseRange(text)
  return typeof range === 'string' ? range : undefined
}

const isWholeIn = (value: number, most: number): boolean => Number.isInteger(value) && isNumberIn(value, 0, most)

function allowanceProblem({ requests, tokens, concurrencyMax, budgets = [] }: Allowance): ValueProblem | undefined {
  const isRate = (rate: RateLimit | undefined): boolean =>
    rate === undefined || (isWholeIn(rate.perMinute, RATE_MAX) && isWholeIn(rate.burst, RATE_BURST_MAX))
  const isCount =
    concurrencyMax === undefined || (Number.isInteger(concurrencyMax) && isNumberIn(concurrencyMax, 0, CONCURRENCY_MAX))
  if (isRate(requests) && isRate(tokens) && isCount) return budgetsProblem(budgets)
  const because = `has a limit that is no whole number from 1 to ${RATE_MAX} a minute, ${RATE_BURST_MAX} in a burst, ${CONCURRENCY_MAX} at once`
  return { param: 'terms.allowance', because }
}

function budgetsProblem(budgets: readonly SpendLimit[]): ValueProblem | undefined {
  const param = 'terms.allowance.budgets'
  if (budgets.length > BUDGETS_MAX)
    return { param, because: `has ${budgets.length} budgets; ${BUDGETS_MAX} are the most` }
  if (new Set(budgets.map(spendKeyOf)).size < budgets.length)
    return { param, because: 'has two budgets for the same thing: make one of them' }
  const wrong = budgets.map(wrongWithBudget).find((because) => because !== undefined)
  return wrong === undefined ? undefined : { param, because: wrong }
}

function wrongWithBudget({ period, nanoMax, tokensMax, marks, model, isPerUser }: SpendLimit): string | undefined {
  if (typeof period === 'object' && !isWholeIn(period.hours, SPEND_HOURS_MAX))
    return `has a period that is no whole number of hours from 1 to ${SPEND_HOURS_MAX}`
  if (nanoMax === undefined && tokensMax === undefined) return 'has a budget without nanoMax and without tokensMax'
  if (!isWholeIn(nanoMax ?? 1, SPEND_MAX) || !isWholeIn(tokensMax ?? 1, SPEND_MAX))
    return `has an amount that is no whole number from 1 to ${SPEND_MAX}`
  const isRising = marks.every((mark, i) => isNumberIn(mark, marks[i - 1] ?? 0, 1))
  if (!isRising || marks.length > MARKS_MAX)
    return `has marks that are not up to ${MARKS_MAX} rising shares above 0 and up to 1`
  if (model !== undefined && isPerUser === true) return 'has a budget for one model and per user: make two of it'
  return model === undefined ? undefined : modelProblem(model)
}
