import { type Cell, csvOf } from './csv.ts'
import type { ShownUsage } from './usage-rows.ts'

/**
 * Usage as a file of FOCUS 1.2: a line per org, tenant, key, model and day. What is billed, contracted and listed is the
 * price by the price list, which may be the org's own; what is effective is the engines' cost.
 */
export interface FocusNames {
  /** Who sells it, and who sends the invoice. */
  readonly provider: string
}

const HEADING = [
  'BilledCost',
  'BillingAccountId',
  'BillingAccountName',
  'BillingCurrency',
  'BillingPeriodEnd',
  'BillingPeriodStart',
  'ChargeCategory',
  'ChargeClass',
  'ChargeDescription',
  'ChargePeriodEnd',
  'ChargePeriodStart',
  'ConsumedQuantity',
  'ConsumedUnit',
  'ContractedCost',
  'EffectiveCost',
  'InvoiceIssuerName',
  'ListCost',
  'PricingQuantity',
  'PricingUnit',
  'ProviderName',
  'PublisherName',
  'ServiceCategory',
  'ServiceName',
  'SubAccountId',
  'SubAccountName',
  'x_Key',
  'x_Model',
  'x_Requests',
  'x_PrefillMs',
  'x_DecodeMs',
  'x_KvBlockSeconds',
] as const

export const FOCUS_BY = ['org', 'tenant', 'key', 'model', 'day'] as const

const DAY_MS = 86_400_000

export function focusCsv(rows: readonly ShownUsage[], names: FocusNames): string {
  return csvOf([HEADING, ...rows.map((row) => lineOf(row, names))])
}

function lineOf(row: ShownUsage, { provider }: FocusNames): readonly Cell[] {
  const { org = '', tenant = '', key = '', model = '', day = '' } = row
  const tokens = row.input_tokens + row.output_tokens
  const cells: Readonly<Record<(typeof HEADING)[number], Cell>> = {
    BilledCost: row.price_usd,
    BillingAccountId: org,
    BillingAccountName: org,
    BillingCurrency: 'USD',
    ...periodsOf(day),
    ChargeCategory: 'Usage',
    ChargeClass: null,
    ChargeDescription: `${row.requests} requests to ${model}`,
    ConsumedQuantity: tokens,
    ConsumedUnit: 'Tokens',
    ContractedCost: row.price_usd,
    EffectiveCost: row.cost_usd,
    InvoiceIssuerName: provider,
    ListCost: row.price_usd,
    PricingQuantity: tokens,
    PricingUnit: 'Tokens',
    ProviderName: provider,
    PublisherName: provider,
    ServiceCategory: 'AI and Machine Learning',
    ServiceName: 'LLM inference',
    SubAccountId: tenant,
    SubAccountName: tenant,
    x_Key: key,
    x_Model: model,
    x_Requests: row.requests,
    x_PrefillMs: row.prefill_ms,
    x_DecodeMs: row.decode_ms,
    x_KvBlockSeconds: row.kv_block_seconds,
  }
  return HEADING.map((name) => cells[name])
}

/** A charge's period is its day; a bill's is the month. Both end before their end. */
function periodsOf(day: string): Readonly<Record<FocusPeriod, string>> {
  const startMs = Date.parse(`${day}T00:00:00Z`)
  const [year = 1970, month = 1] = day.split('-').map(Number)
  return {
    ChargePeriodStart: timeOf(startMs),
    ChargePeriodEnd: timeOf(startMs + DAY_MS),
    BillingPeriodStart: timeOf(Date.UTC(year, month - 1, 1)),
    BillingPeriodEnd: timeOf(Date.UTC(year, month, 1)),
  }
}

type FocusPeriod = 'ChargePeriodStart' | 'ChargePeriodEnd' | 'BillingPeriodStart' | 'BillingPeriodEnd'

const timeOf = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')
