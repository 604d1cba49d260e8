import { addressProblem } from './check-address.ts'
import { isLoopback } from './demo.ts'
import type { Path, Problem } from './explain.ts'
import { nearest } from './nearest.ts'
import type { IssuerConfig, Settings } from './schema.ts'

/** Issuers that cannot work, or that would let the wrong callers in. */
export function checkOidc({ oidc: { issuers }, tenants, upstreams }: Settings): Problem[] {
  const known = tenants.map(({ id }) => id)
  return issuers.flatMap((issuer, i) => {
    const path = ['oidc', 'issuers', i]
    const before = issuers.slice(0, i)
    return [
      ...checkAddresses(issuer, path, upstreams.hostsAllowed),
      ...checkTenantsOf(issuer, path, known),
      ...checkRoles(issuer, path),
      ...before.flatMap((other): Problem[] => [
        ...(other.id === issuer.id ? [{ path: [...path, 'id'], text: sameAs(issuer.id) }] : []),
        ...(other.issuer === issuer.issuer ? [{ path: [...path, 'issuer'], text: sameAs(issuer.issuer) }] : []),
      ]),
    ]
  })
}

const sameAs = (value: string): string => `is "${value}", which another issuer has already. Give each its own`

function checkAddresses(issuer: IssuerConfig, path: Path, hostsAllowed: readonly string[]): Problem[] {
  const { jwksUrl } = issuer
  const at = (setting: string, url: string, isCalled: boolean): Problem[] => {
    const text =
      addressProblem(url, hostsAllowed) ?? (isCalled ? keysAddressProblem(url, issuer, hostsAllowed) : undefined)
    return text === undefined ? [] : [{ path: [...path, setting], text }]
  }
  return [
    ...at('issuer', issuer.issuer, jwksUrl === undefined),
    ...(jwksUrl === undefined ? [] : at('jwksUrl', jwksUrl, true)),
  ]
}

/** What is wrong with an address that keys are read from, wherever the address came from. */
export function keysAddressProblem(
  url: string,
  { plainHttp }: Pick<IssuerConfig, 'plainHttp'>,
  hostsAllowed: readonly string[],
): string | undefined {
  const problem = addressProblem(url, hostsAllowed)
  if (problem !== undefined) return problem
  const { protocol, hostname, username, password } = new URL(url)
  if (username !== '' || password !== '') return 'has a user or a password in it. Remove it: keys are public'
  if (protocol === 'https:' || plainHttp || isLoopback(hostname)) return undefined
  return 'begins with http:, so anyone on the path could replace the keys. Use https:, or set plainHttp: true'
}

function checkTenantsOf(
  { tenant, tenantClaim, tenants, orgs }: IssuerConfig,
  path: Path,
  known: readonly string[],
): Problem[] {
  const problems: Problem[] = []
  if (tenant !== undefined && (tenantClaim !== undefined || tenants !== undefined)) {
    const text = 'is set beside tenantClaim or tenants. Keep one way to find the tenant'
    problems.push({ path: [...path, 'tenant'], text })
  }
  const named = [
    ...(tenant === undefined ? [] : [{ id: tenant, at: [...path, 'tenant'] }]),
    ...Object.entries(tenants ?? {}).map(([value, id]) => ({ id, at: [...path, 'tenants', value] })),
  ]
  for (const { id, at } of named) {
    // Tenants of these orgs may be made at run time.
    if (known.includes(id) || orgs !== undefined) continue
    const guess = nearest(id, known)
    const advice = guess === undefined ? `Known: ${known.join(', ')}` : `Did you mean "${guess}"?`
    problems.push({ path: at, text: `is "${id}", but there is no such tenant. ${advice}` })
  }
  return problems
}

function checkRoles({ roleClaim, roles }: IssuerConfig, path: Path): Problem[] {
  if (roleClaim === undefined && Object.keys(roles).length > 0)
    return [{ path: [...path, 'roles'], text: 'is set, but no claim says them. Set roleClaim' }]
  if (roleClaim !== undefined && Object.keys(roles).length === 0)
    return [{ path: [...path, 'roleClaim'], text: 'is set, but no value of it is a role. Set roles' }]
  return []
}
