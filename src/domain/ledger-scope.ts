import type { Payer } from './ledger.ts'

/** Names of the scopes that a line of the ledger counts for; `budgets` asks for balances by the same names. */
export const orgScope = (orgId: string): string => `org:${orgId}`
export const tenantScope = (tenantId: string): string => `tenant:${tenantId}`
export const keyScope = (keyId: string): string => `key:${keyId}`
/** A model's use is counted per tenant. */
export const modelScope = (tenantId: string, model: string): string => `model:${tenantId}/${model}`
export const userScope = (tenantId: string, endUser: string): string => `user:${tenantId}/${endUser}`

export function scopesOf({ orgId, tenantId, keyId, endUser }: Payer, model: string): readonly string[] {
  const scopes = [orgScope(orgId), tenantScope(tenantId), keyScope(keyId), modelScope(tenantId, model)]
  return endUser === '' ? scopes : [...scopes, userScope(tenantId, endUser)]
}
