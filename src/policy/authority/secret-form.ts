/**
 * What does a secret look like, and which key does it name?
 *
 * `spw_<id>_<secret>`: a prefix that scanners for leaked secrets can search for, the key's id, and 32 random bytes in
 * base64url. Ids have no `_` (`plain-text.ts`), so the first two separate the parts whatever the random part has. The
 * hash is made of the whole text. The id helps people to find the key of a secret; it proves nothing, and nothing is
 * looked up by it. Older secrets, `sk-sw-…`, name no key and stay valid.
 *
 * Example: `spw_checkout-prod_q3…` names the key `checkout-prod`.
 */
export function formSecret(keyId: string, randomPart: string): string {
  return `spw_${keyId}_${randomPart}`
}

/** The id that a secret claims to belong to. */
export function keyIdInSecret(secret: string): string | undefined {
  return /^spw_([a-z0-9.-]{1,64})_[\w-]+$/.exec(secret)?.[1]
}
