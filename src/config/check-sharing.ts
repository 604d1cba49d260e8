import { halfOf, sliceMaxOf } from '../policy/sharing/leased-bucket.ts'
import type { Problem } from './explain.ts'
import type { Settings, TenantConfig } from './schema.ts'

/** Addresses of the lease store; empty where limits are not shared. */
export const redisUrlsOf = ({ sharing }: Pick<Settings, 'sharing'>): readonly string[] =>
  sharing.redis.url?.split(',') ?? []

/** Settings of sharing that are good by themselves and wrong together. */
export function checkSharing(settings: Settings): Problem[] {
  const { redis, forgetMs, ttlMs, scope } = settings.sharing
  const path = ['sharing', 'redis']
  const urls = redisUrlsOf(settings)
  const problems: Problem[] = []
  const say = (at: readonly string[], text: string): void => void problems.push({ path: [...at], text })
  if (urls.length === 0) {
    for (const key of ['username', 'password', 'passwordFile', 'tls'] as const)
      if (redis[key] !== undefined) say([...path, key], 'is set, but there is no address. Set sharing.redis.url')
    return problems
  }
  for (const url of urls)
    if (!URL.canParse(url)) say([...path, 'url'], `has "${hidden(url)}", which is no address. Correct it`)
  if (redis.kind === 'server' && urls.length > 1)
    say([...path, 'url'], 'has several addresses, but sharing.redis.kind is "server". Set it to sentinel or cluster')
  if (redis.password !== undefined && redis.passwordFile !== undefined)
    say([...path, 'passwordFile'], 'and sharing.redis.password are both set. Keep one of them')
  if (new Set(urls.map((url) => url.startsWith('rediss:'))).size > 1)
    say([...path, 'url'], 'has addresses with TLS and without. Use rediss:// for all of them, or for none')
  if (redis.tls !== undefined && !urls.some((url) => url.startsWith('rediss:')))
    say([...path, 'tls'], 'is set, but no address begins with rediss://. Change sharing.redis.url')
  if ((redis.tls?.certFile === undefined) !== (redis.tls?.keyFile === undefined))
    say([...path, 'tls'], 'has a certificate without its key, or the other way round. Give both')
  if (forgetMs < 10 * ttlMs)
    say(
      ['sharing', 'forgetMs'],
      `is less than ten times sharing.ttlMs (${ttlMs}): a short silence would cost a gateway its share. Raise it`,
    )
  if (scope === 'platform' && settings.regions.local === undefined)
    say(['sharing', 'scope'], 'is "platform", but there are no regions. Set regions.local, or leave it at "region"')
  return problems
}

/** Several gateways without a common database have no leader: said where it matters, because a release is tried. */
export function leaderLines(settings: Pick<Settings, 'sharing' | 'store' | 'models'>): string[] {
  if (redisUrlsOf(settings).length === 0 || settings.store.url !== undefined) return []
  const tried = settings.models.filter(({ rollout }) => rollout !== undefined).map(({ name }) => name)
  if (tried.length === 0) return []
  return [
    `sharing.redis.url says that there are several gateways, but they have no common database: no gateway leads, so no release of ${tried.slice(0, 5).join(', ')} is promoted, and no holdout set is asked. Set store.url (DATABASE_URL) to one PostgreSQL.`,
  ]
}

/**
 * Limits that large requests will not fit into once gateways share them, one line each. Half of a burst stays in the
 * store, and one gateway holds a slice of the other half: a request that is larger than both never fits.
 */
export function sharedLimitLines(settings: Pick<Settings, 'sharing' | 'tenants' | 'limits'>): string[] {
  if (redisUrlsOf(settings).length === 0) return []
  const tokensMax = settings.limits.promptTokensMax
  const limits = settings.tenants.flatMap((tenant) => [
    ...lineOf(`tenant ${tenant.id}`, tenant.allowance, tokensMax),
    ...tenant.keys.flatMap((key) => lineOf(`key ${key.id}`, key.allowance, tokensMax)),
  ])
  return limits.length <= LINES_MAX
    ? limits
    : [...limits.slice(0, LINES_MAX), `${limits.length - LINES_MAX} further limits are as small.`]
}

/** A platform may have thousands of tenants on the same terms. */
const LINES_MAX = 5

/** Without a bound on prompts: the context of a usual model. A smaller burst refuses ordinary requests. */
const REQUEST_TOKENS = 8_192

function lineOf(whose: string, { tokens }: TenantConfig['allowance'], promptTokensMax = REQUEST_TOKENS): string[] {
  if (tokens === undefined) return []
  const limit = { perMinute: tokens.perMinute, burst: tokens.burst ?? tokens.perMinute }
  // With two gateways; with more of them a slice is smaller yet.
  const largest = halfOf(limit) + sliceMaxOf(limit, 2)
  if (limit.burst < promptTokensMax || largest >= promptTokensMax) return []
  return [
    `${whose} has a burst of ${limit.burst} tokens. Shared by gateways, a request of more than ${largest} tokens never fits, ` +
      `although prompts may have ${promptTokensMax}. Raise its tokens.burst to ${2 * promptTokensMax} or more.`,
  ]
}

const hidden = (url: string): string => url.replace(/\/\/[^@]*@/, '//(hidden)@')
