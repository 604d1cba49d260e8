import { type Instant, secondsToUs } from '../base/clock.ts'
import type { IssuerTerms } from '../domain/identity.ts'
import type { ParsedToken } from './parse-token.ts'

/** Tokens for APIs, and tokens that do not say what they are. Those for other uses (`logout+jwt`) say so. */
const TYPES: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt', 'application/jwt'])

/** The instant from which on the token is no longer good; NaN when it does not say. */
export const expiryOf = ({ claims }: ParsedToken, { leewayUs }: IssuerTerms): Instant =>
  isNumber(claims['exp']) ? secondsToUs(claims['exp']) + leewayUs : Number.NaN

/** What is wrong with a token that this issuer has signed (RFC 7519, 4.1); undefined when nothing is. */
export function claimProblem(token: ParsedToken, terms: IssuerTerms, now: Instant): string | undefined {
  const { claims, header } = token
  const { typ } = header
  if (!TYPES.has(typeof typ === 'string' ? typ.toLowerCase() : typ)) return 'is not for calls of an API (`typ`)'
  if (!audiencesOf(claims['aud']).some((one) => terms.audiences.includes(one))) return 'is for another audience (`aud`)'
  const expiresAt = expiryOf(token, terms)
  if (Number.isNaN(expiresAt)) return 'has no time of expiry (`exp`)'
  if (now >= expiresAt) return 'has expired'
  const { nbf, iat } = claims
  if ((nbf !== undefined && !isNumber(nbf)) || (iat !== undefined && !isNumber(iat)))
    return 'has a time that is no number (`nbf`, `iat`)'
  return nbf !== undefined && secondsToUs(nbf) > now + terms.leewayUs ? 'is not valid yet (`nbf`)' : undefined
}

function audiencesOf(aud: unknown): string[] {
  return (Array.isArray(aud) ? aud : [aud]).filter((one): one is string => typeof one === 'string')
}

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
