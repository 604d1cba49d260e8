/**
 * The columns of FOCUS 1.2 that our exports have, with the rules that can be checked in a file by itself: the
 * FinOps Open Cost and Usage Specification (FOCUS) 1.2, restated in our words. A column that no row names is somebody
 * else's: allowed if its name begins with x_, told otherwise.
 */
export type FocusType = 'text' | 'decimal' | 'time'

export interface FocusColumn {
  readonly name: string
  readonly type: FocusType
  readonly isMandatory: boolean
  readonly isNullable: boolean
  readonly allowed?: readonly string[]
  /** How the text has to look, and in which words that is told. */
  readonly form?: readonly [RegExp, string]
}

const column = (name: string, type: FocusType, more: Partial<FocusColumn> = {}): FocusColumn => ({
  name,
  type,
  isMandatory: true,
  isNullable: false,
  ...more,
})
const NULLABLE = { isNullable: true }
const CONDITIONAL = { isMandatory: false, isNullable: true }

export const CHARGE_CATEGORIES = ['Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'] as const

export const SERVICE_CATEGORIES = [
  'AI and Machine Learning',
  'Analytics',
  'Business Applications',
  'Compute',
  'Databases',
  'Developer Tools',
  'Multicloud',
  'Identity',
  'Integration',
  'Internet of Things',
  'Management and Governance',
  'Media',
  'Migration',
  'Mobile',
  'Networking',
  'Security',
  'Storage',
  'Web',
  'Other',
] as const

/** `Tokens`, `GB-Hours`, `Requests/Day`, `1000 Tokens`. */
const UNIT = [/^(\d+ )?[A-Za-z]+([-/](\d+ )?[A-Z][a-z]+)?$/, 'a unit, as Tokens, GB-Hours or 1000 Tokens'] as const
const CURRENCY = [/^[A-Z]{3}$/, 'a currency of three capital letters, as USD'] as const

export const FOCUS_COLUMNS: readonly FocusColumn[] = [
  column('BilledCost', 'decimal'),
  column('BillingAccountId', 'text'),
  column('BillingAccountName', 'text', NULLABLE),
  column('BillingCurrency', 'text', { form: CURRENCY }),
  column('BillingPeriodEnd', 'time'),
  column('BillingPeriodStart', 'time'),
  column('ChargeCategory', 'text', { allowed: CHARGE_CATEGORIES }),
  column('ChargeClass', 'text', { ...NULLABLE, allowed: ['Correction'] }),
  column('ChargeDescription', 'text', NULLABLE),
  column('ChargePeriodEnd', 'time'),
  column('ChargePeriodStart', 'time'),
  column('ContractedCost', 'decimal'),
  column('EffectiveCost', 'decimal'),
  column('InvoiceIssuerName', 'text'),
  column('ListCost', 'decimal'),
  column('PricingQuantity', 'decimal', NULLABLE),
  column('PricingUnit', 'text', { ...NULLABLE, form: UNIT }),
  column('ProviderName', 'text'),
  column('PublisherName', 'text'),
  column('ServiceCategory', 'text', { allowed: SERVICE_CATEGORIES }),
  column('ServiceName', 'text'),
  column('ConsumedQuantity', 'decimal', CONDITIONAL),
  column('ConsumedUnit', 'text', { ...CONDITIONAL, form: UNIT }),
  column('SubAccountId', 'text', CONDITIONAL),
  column('SubAccountName', 'text', CONDITIONAL),
]

/** A row by the names of its columns. */
export type FocusRow = Readonly<Record<string, string | null>>

/** Rules between the columns of a row: what is wrong with it, in words. */
export const ROW_RULES: ReadonlyArray<(row: FocusRow) => string | undefined> = [
  ({ BillingPeriodStart: start, BillingPeriodEnd: end }) =>
    isBefore(start, end) ? undefined : 'BillingPeriodEnd is not after BillingPeriodStart',
  ({ ChargePeriodStart: start, ChargePeriodEnd: end }) =>
    isBefore(start, end) ? undefined : 'ChargePeriodEnd is not after ChargePeriodStart',
  (row) => {
    const isCharged = row['ChargeCategory'] === 'Usage' || row['ChargeCategory'] === 'Purchase'
    const isMissing = isCharged && row['ChargeClass'] !== 'Correction' && isNull(row['PricingQuantity'])
    return isMissing ? `PricingQuantity is missing for a charge of the category ${row['ChargeCategory']}` : undefined
  },
  (row) =>
    row['ChargeCategory'] === 'Tax' && !isNull(row['PricingQuantity']) ? 'a tax has no PricingQuantity' : undefined,
  (row) => bothOrNone(row, 'PricingQuantity', 'PricingUnit'),
  (row) => bothOrNone(row, 'ConsumedQuantity', 'ConsumedUnit'),
  (row) => bothOrNone(row, 'SubAccountId', 'SubAccountName'),
  (row) =>
    row['ChargeCategory'] !== 'Usage' && !isNull(row['ConsumedQuantity'])
      ? 'ConsumedQuantity is for the category Usage'
      : undefined,
  (row) =>
    row['ChargeCategory'] === 'Credit' && row['EffectiveCost'] !== row['BilledCost']
      ? 'EffectiveCost of a credit is its BilledCost'
      : undefined,
]

const isNull = (cell: string | null | undefined): boolean => cell === null || cell === undefined

/** Times of the same form are ordered as texts. */
const isBefore = (start: string | null | undefined, end: string | null | undefined): boolean =>
  typeof start !== 'string' || typeof end !== 'string' || start < end

function bothOrNone(row: FocusRow, one: string, other: string): string | undefined {
  if (!(one in row) || !(other in row) || isNull(row[one]) === isNull(row[other])) return undefined
  return `${one} and ${other} are both there or both missing`
}
