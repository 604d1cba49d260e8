import type { Screening } from '../../domain/screening.ts'
import type { Tenant } from '../../domain/tenant.ts'

/** What the gateway would hand to the story, without texts. */
export function simulatedScreening({ screening }: Pick<Tenant, 'screening'>): { readonly screening?: Screening } {
  return screening === undefined ? {} : { screening: { terms: screening, texts: [], found: [], unscreened: [] } }
}
