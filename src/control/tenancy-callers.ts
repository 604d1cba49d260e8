import type { KeyTerms } from '../domain/key-terms.ts'
import type { ScreeningWish } from '../domain/screening.ts'
import type { KeyRecord, OrgRecord, TenantRecord } from '../domain/tenancy.ts'
import { BANDS, type Key, type Slo, type Tenant } from '../domain/tenant.ts'
import type { Caller, CallerCall } from '../gateway/authenticate.ts'
import type { RunTimeTenant } from '../gateway/tenant-directory.ts'
import { parseAddress } from '../policy/authority/client-range.ts'
import { clipTerms, rangesOf } from '../policy/authority/clip-terms.ts'
import { type KeyInForce, timeProblem } from '../policy/authority/find-key.ts'
import { callDenial } from '../policy/authority/may-call.ts'
import { sloInForce } from '../policy/authority/tree.ts'

/**
 * Callers of keys that were made at run time: records become the tenant and the key that requests carry.
 *
 * Budgets and standings are kept by object, so records that did not change give the same tenant and the same key, also
 * for the two secrets of a rotation. A tenant of the configuration file is the file's own object.
 */
export interface CallerSettings {
  readonly slos: ReadonlyMap<string, Slo>
  readonly fileTenants: ReadonlyMap<string, Tenant>
  /** The platform's own longest wait. */
  readonly queueUsMax: number
  /** The terms that follow from what a tenant wishes itself. */
  readonly screeningOf: (wish: ScreeningWish | undefined) => Pick<Tenant, 'screening'>
}

export class TenancyCallers {
  readonly #settings: CallerSettings
  readonly #callers = new WeakMap<KeyInForce, Caller>()
  readonly #tenants = new WeakMap<TenantRecord, { readonly org: OrgRecord; readonly tenant: Tenant }>()
  readonly #runTimeTenants = new WeakMap<
    TenantRecord,
    { readonly org: OrgRecord; readonly terms: KeyTerms; readonly made: RunTimeTenant }
  >()
  readonly #keys = new WeakMap<KeyRecord, { readonly limits: string; readonly key: Key }>()

  constructor(settings: CallerSettings) {
    this.#settings = settings
  }

  /** The promises that tenants may have, by name. */
  get slos(): ReadonlyMap<string, Slo> {
    return this.#settings.slos
  }

  /** Undefined where the tenant's promise is not in the configuration any more, so that nothing can be promised. */
  callerOf(found: KeyInForce): Caller | undefined {
    const known = this.#callers.get(found)
    if (known !== undefined) return known
    const tenant = this.tenantOf(found.org, found.tenant)
    if (tenant === undefined) return undefined
    const { terms } = found
    const caller: Caller = {
      tenant,
      key: this.#keyOf(found),
      ...(terms.bands !== undefined && { bands: terms.bands }),
      ...(terms.models !== undefined && { models: terms.models }),
      denial: (call) => denialOf(found, call),
    }
    this.#callers.set(found, caller)
    return caller
  }

  /** The tenant for callers without a key: on its own terms, which it may have outlived. */
  runTimeTenantOf(org: OrgRecord, record: TenantRecord, nowMs: number): RunTimeTenant | undefined {
    let known = this.#runTimeTenants.get(record)
    if (known?.org !== org) {
      const tenant = this.tenantOf(org, record)
      if (tenant === undefined) return undefined
      const terms = clipTerms(org.terms, record.terms)
      const ranges = terms.clientRanges === undefined ? undefined : rangesOf(terms.clientRanges)
      known = {
        org,
        terms,
        made: {
          tenant,
          ...(terms.models !== undefined && { models: terms.models }),
          denial: (call) => denialOf({ terms, ranges }, call),
          peerDenial: (call) => denialOf({ terms, ranges: undefined }, call),
        },
      }
      this.#runTimeTenants.set(record, known)
    }
    return timeProblem(known.terms, nowMs) === undefined ? known.made : undefined
  }

  tenantOf(org: OrgRecord, record: TenantRecord): Tenant | undefined {
    if (record.source === 'file') return this.#settings.fileTenants.get(record.id)
    const known = this.#tenants.get(record)
    if (known?.org === org) return known.tenant
    const slo = this.#settings.slos.get(sloInForce(org, record))
    if (slo === undefined) return undefined
    const { id, orgId, weight, bidMax, contract, queueUsMax = this.#settings.queueUsMax } = record
    const { answerCache, storing } = record
    const terms = clipTerms(org.terms, record.terms)
    const tenant: Tenant = {
      id,
      orgId,
      weight,
      ...(org.weight !== undefined && { orgWeight: org.weight }),
      slo,
      bands: terms.bands ?? BANDS,
      allowance: terms.allowance ?? {},
      ...(org.terms.allowance !== undefined && { orgAllowance: org.terms.allowance }),
      bidMax,
      contract,
      queueUsMax,
      ...(answerCache !== undefined && { answerCache }),
      ...(storing !== undefined && { storing }),
      ...this.#settings.screeningOf(record.screening),
    }
    this.#tenants.set(record, { org, tenant })
    return tenant
  }

  #keyOf({ key: record, terms }: KeyInForce): Key {
    // A key without limits of its own spends its tenant's only.
    const allowance = record.terms.allowance === undefined ? {} : (terms.allowance ?? {})
    const limits = JSON.stringify(allowance)
    const known = this.#keys.get(record)
    if (known?.limits === limits) return known.key
    const key: Key = { id: record.id, tenantId: record.tenantId, weight: record.weight, allowance }
    this.#keys.set(record, { limits, key })
    return key
  }
}

function denialOf(
  found: Parameters<typeof callDenial>[0],
  { clientAddress, route, model, band }: CallerCall,
): ReturnType<typeof callDenial> {
  const text = found.ranges === undefined ? undefined : clientAddress()
  return callDenial(found, {
    address: text === undefined ? undefined : parseAddress(text),
    ...(route !== undefined && { route }),
    ...(model !== undefined && { model }),
    ...(band !== undefined && { band }),
  })
}
