import * as defaults from './defaults.ts'
import { hashKey } from './key-hash.ts'

/**
 * The configuration without a file: three simulated models (two for chat, one for vectors) and three tenants with
 * published keys, enough to see fairness, degradation and refusal. The keys are public, so they are accepted on
 * loopback only.
 */
export const DEMO_KEYS: readonly { readonly tenantId: string; readonly secret: string }[] = [
  { tenantId: 'acme', secret: 'sk-demo-acme' },
  { tenantId: 'globex', secret: 'sk-demo-globex' },
  { tenantId: 'initech', secret: 'sk-demo-initech' },
]

/** The demo key of the admin API; public, so it is accepted on loopback only. */
export const DEMO_ADMIN_KEY = 'sk-demo-admin'

export const demoAdmin = () => ({ keys: [{ id: 'demo-admin', hash: hashKey(DEMO_ADMIN_KEY) }] })

/** Three promises to choose from; the `slos` of a file replace them. */
export const defaultSlos = () => [
  { name: 'fast', ttftMs: 1_000, interTokenMs: 50, totalMs: 30_000 },
  { name: 'steady', ttftMs: 2_000, interTokenMs: 100, totalMs: 60_000 },
  { name: 'patient', ttftMs: 10_000, interTokenMs: 250, totalMs: 600_000 },
]

export const demoModels = () => [
  { name: 'spill-large', fallback: 'spill-small' },
  { name: 'spill-small' },
  { name: 'spill-embed', kind: 'embedding', contextTokensMax: 8_192 },
]

export const demoPools = () => [
  { model: 'spill-large', backend: { kind: 'simulated', profile: defaults.PROFILE_LARGE }, replicas: 2 },
  { model: 'spill-small', backend: { kind: 'simulated', profile: defaults.PROFILE_SMALL }, replicas: 2 },
  { model: 'spill-embed', backend: { kind: 'simulated', profile: defaults.PROFILE_EMBEDDING } },
]

export const demoTenants = () => [
  { id: 'acme', weight: 4, slo: 'fast', contract: 'reject', bidMax: 10, keys: demoKeys('acme') },
  { id: 'globex', weight: 2, slo: 'steady', contract: 'degrade', bidMax: 10, keys: demoKeys('globex') },
  {
    id: 'initech',
    weight: 1,
    slo: 'patient',
    contract: 'degrade',
    bidMax: 10,
    allowance: { requests: { perMinute: 120, burst: 20 } },
    keys: demoKeys('initech'),
  },
]

function demoKeys(tenantId: string) {
  return DEMO_KEYS.filter((key) => key.tenantId === tenantId).map(({ secret }) => ({
    id: `${tenantId}-demo`,
    hash: hashKey(secret),
  }))
}

export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase()
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare) || bare === '::ffff:127.0.0.1'
}
