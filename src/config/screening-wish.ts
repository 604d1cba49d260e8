import { fillDefaults, isValid } from '../base/check-schema.ts'
import type { ScreeningWish } from '../domain/screening.ts'
import type { Tenant } from '../domain/tenant.ts'
import { checkScreening } from './check-screening.ts'
import { asNode, explain } from './explain.ts'
import type { Config } from './schema.ts'
import { TenantScreeningSchema } from './schema-screening.ts'
import { sharedScreening } from './to-domain.ts'

/** What a tenant that was made at run time wishes of its screening: the words of `tenants[].screening`, and its checks. */

/** The problem of a wish; undefined when it has none. */
export function wishProblem(
  settings: Config,
  wish: ScreeningWish,
): { readonly param: string; readonly because: string } | undefined {
  const filled: unknown = fillDefaults(TenantScreeningSchema, structuredClone(wish))
  const isGood = isValid(TenantScreeningSchema, filled)
  const [problem] = isGood
    ? checkScreening({ ...settings, tenants: [{ ...NOBODY, screening: filled }] })
    : explain(asNode(TenantScreeningSchema), filled, ['tenants', 0, 'screening'])
  if (problem === undefined) return isGood ? undefined : { param: 'screening', because: 'the policy is not valid' }
  const param = problem.path.slice(2).join('.')
  return { param, because: `the value of ${param} ${problem.text}` }
}

const NOBODY = { id: 'nobody' } as Config['tenants'][number]

/** The terms of tenants by their wishes. A wish that cannot be read any more counts as none: the platform's policy. */
export function wishReader(settings: Config): (wish: ScreeningWish | undefined) => Pick<Tenant, 'screening'> {
  const screeningOf = sharedScreening(settings)
  return (wish) => {
    if (wish === undefined) return screeningOf(undefined)
    const filled: unknown = fillDefaults(TenantScreeningSchema, structuredClone(wish))
    return screeningOf(isValid(TenantScreeningSchema, filled) ? filled : undefined)
  }
}
