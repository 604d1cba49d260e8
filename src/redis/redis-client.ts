import { createClient, createCluster, createSentinel } from '@redis/client'

/**
 * A client of Redis or Valkey whose waits are all bounded. node-redis' own `commandOptions.timeout` ends when a command is
 * *written*, so it does not end a call to a server that hangs: callers put `withinTime` around every command, and
 * `socketTimeout` closes a connection on which nothing comes.
 */

/** Commands in flight. A server that has stopped reading must not fill our memory. */
const COMMANDS_MAX = 1_000

/** A server that is silent for this long while a command waits is disconnected, and connected again. */
const SILENCE_MS_MAX = 2_000

/** Longest pause between two attempts to connect: a server that is back is in use within a second. */
const RECONNECT_MS_MAX = 1_000

const SOCKET = {
  connectTimeout: 1_000,
  socketTimeout: SILENCE_MS_MAX,
  reconnectStrategy: (attempts: number) => Math.min(RECONNECT_MS_MAX, 50 * 2 ** Math.min(attempts, 5)),
}

/** What every connection brings, whatever the shape of the installation. */
export interface RedisLogin {
  /** As in the first address if absent. */
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** For `rediss://` addresses. */
  readonly tls?: RedisTls | undefined
}

/** PEM texts: the authority that signed the server's certificate, and this client's own certificate with its key. */
export interface RedisTls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly serverName?: string
  /** False: any certificate is trusted. */
  readonly isVerified?: boolean
}

/** Told why a connection failed. The client goes on by itself, so nothing else follows from it. */
export type OnRedisError = (problem: string) => void

export type RedisClient = ReturnType<typeof makeRedisClient>
export type RedisCluster = ReturnType<typeof makeRedisCluster>

export function makeRedisClient(url: string, login: RedisLogin = {}, onError: OnRedisError = () => {}) {
  const { socket, ...bounds } = boundsOf([url], login)
  const client = createClient({ url, ...loginOf([url], login), ...bounds, socket })
  // Callers see that there is no answer; the client reconnects by itself.
  client.on('error', (error: unknown) => onError(String(error)))
  return client
}

export function makeRedisCluster(urls: readonly string[], login: RedisLogin = {}, onError: OnRedisError = () => {}) {
  const cluster = createCluster({
    rootNodes: urls.map((url) => ({ url })),
    defaults: { ...loginOf(urls, login), ...boundsOf(urls, login) },
  })
  cluster.on('error', (error: unknown) => onError(String(error)))
  return cluster
}

/** `urls` are the addresses of the sentinels; `name` is what they call the master. */
export function makeRedisSentinel(
  urls: readonly string[],
  name: string,
  login: RedisLogin = {},
  onError: OnRedisError = () => {},
) {
  const sentinel = createSentinel({
    name,
    sentinelRootNodes: urls.map((url) => {
      const { hostname, port } = new URL(url)
      return { host: hostname, port: port === '' ? SENTINEL_PORT : Number(port) }
    }),
    nodeClientOptions: { ...loginOf(urls, login), ...boundsOf(urls, login) },
    sentinelClientOptions: boundsOf(urls, login),
    // How often the sentinels are asked which server is the master: a failover is noticed within a second.
    scanInterval: RECONNECT_MS_MAX,
  })
  sentinel.on('error', (error: unknown) => onError(String(error)))
  return sentinel
}

const SENTINEL_PORT = 26_379

/** Nodes that a server names itself have no user in their address: all use that of the settings, or of the first one. */
function loginOf([first = '']: readonly string[], { username, password }: RedisLogin) {
  const given = URL.canParse(first) ? new URL(first) : undefined
  const user = username ?? (given?.username ? decodeURIComponent(given.username) : undefined)
  const secret = password ?? (given?.password ? decodeURIComponent(given.password) : undefined)
  return { ...(user !== undefined && { username: user }), ...(secret !== undefined && { password: secret }) }
}

/** Nodes that a server names itself have no scheme either: they speak TLS where the addresses of the configuration do. */
const boundsOf = (urls: readonly string[], { tls = {} }: RedisLogin) => ({
  disableOfflineQueue: true,
  commandsQueueMaxLength: COMMANDS_MAX,
  socket: urls.some((url) => url.startsWith('rediss:'))
    ? {
        ...SOCKET,
        tls: true as const,
        ...(tls.ca !== undefined && { ca: tls.ca }),
        ...(tls.cert !== undefined && { cert: tls.cert }),
        ...(tls.key !== undefined && { key: tls.key }),
        ...(tls.serverName !== undefined && { servername: tls.serverName }),
        ...(tls.isVerified === false && { rejectUnauthorized: false }),
      }
    : SOCKET,
})
