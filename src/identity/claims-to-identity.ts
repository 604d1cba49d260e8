import type { Role } from '../domain/actor.ts'
import type { ClaimTerms, TokenFinding } from '../domain/identity.ts'
import type { TokenPart } from './parse-token.ts'

/**
 * Claims → tenant and roles. Pure, and called only with the claims of a token whose signature, issuer, audience and
 * times are right. When in doubt it refuses: a token that could mean two tenants means none.
 */
type Claims = TokenPart

/** OpenID Connect Core, 2: a subject has at most 255 letters. */
const SUBJECT_LENGTH_MAX = 255
/** More groups than this are not looked through. */
const VALUES_MAX = 1_000

export function identityOf(claims: Claims, terms: ClaimTerms): TokenFinding {
  const { sub: subject } = claims
  if (typeof subject !== 'string' || subject === '') return refused('has no subject (`sub`)')
  if (subject.length > SUBJECT_LENGTH_MAX) return refused('has a subject (`sub`) of more than 255 letters')
  // RFC 7800: whoever sends such a token must prove that it has a key. We cannot check that, and a bearer may be a thief.
  if (claims['cnf'] !== undefined)
    return refused('is bound to a key of its client (`cnf`), which cannot be checked here')
  const tenantIds = tenantsOf(claims, terms)
  if (tenantIds.size > 1) return refused(`names more than one tenant in its claim \`${terms.tenantClaim}\``)
  const [tenantId] = tenantIds
  const { issuerId, allowance, orgIds } = terms
  const roles = rolesOf(claims, terms)
  const { exp } = claims
  return {
    kind: 'known',
    identity: {
      issuerId,
      subject,
      roles,
      allowance,
      ...(tenantId !== undefined && { tenantId }),
      ...(orgIds !== undefined && { orgIds }),
      ...(typeof exp === 'number' && { expiresAtMs: Math.floor(exp * 1_000) }),
    },
  }
}

function tenantsOf(claims: Claims, { tenantId, tenantClaim, tenants }: ClaimTerms): ReadonlySet<string> {
  if (tenantId !== undefined) return new Set([tenantId])
  const values = textsAt(claims, tenantClaim)
  return new Set(tenants === undefined ? values : values.flatMap((value) => tenants.get(value) ?? []))
}

function rolesOf(claims: Claims, { roleClaim, roles }: ClaimTerms): Role[] {
  if (roleClaim === undefined) return []
  return [...new Set(textsAt(claims, roleClaim).flatMap((value) => roles.get(value) ?? []))]
}

/** The text or texts of a claim. */
function textsAt(claims: Claims, name: string): string[] {
  const value = valueAt(claims, name)
  if (typeof value === 'string') return [value]
  if (!Array.isArray(value) || value.length > VALUES_MAX) return []
  return value.filter((one): one is string => typeof one === 'string')
}

/**
 * A claim's name may contain dots (`https://example.com/tenant`), so the whole name is looked for first. Then dots lead
 * into objects (`resource_access.llm.team`), whose names may contain dots too (`kubernetes.io.namespace`).
 */
function valueAt(value: unknown, name: string): unknown {
  const whole = own(value, name)
  if (whole !== undefined) return whole
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    const inside = own(value, name.slice(0, dot))
    const found = inside === undefined ? undefined : valueAt(inside, name.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** A property of the value itself: nobody may name what every object inherits. */
const own = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Readonly<Record<string, unknown>>)[key]
    : undefined

const refused = (what: string): TokenFinding => ({ kind: 'refused', because: `The token ${what}.` })
