import { createClient, createCluster, createSentinel } from 'redis'

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
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** PEM of the authority that signed the server's certificate; for `rediss://` addresses. */
  readonly ca?: string | undefined
}

export type RedisClient = ReturnType<typeof makeRedisClient>
export type RedisCluster = ReturnType<typeof makeRedisCluster>

export function makeRedisClient(url: string, login: RedisLogin = {}) {
  const client = createClient({
    url,
    ...loginOf(login),
    disableOfflineQueue: true,
    commandsQueueMaxLength: COMMANDS_MAX,
    socket: { ...SOCKET, ...(login.ca !== undefined && { tls: true as const, ca: login.ca }) },
  })
  // Callers see that there is no answer; the client reconnects by itself.
  client.on('error', () => {})
  return client
}

export function makeRedisCluster(urls: readonly string[], login: RedisLogin = {}) {
  const cluster = createCluster({
    rootNodes: urls.map((url) => ({ url })),
    defaults: { ...loginOf(login), ...boundsOf(urls, login) },
  })
  cluster.on('error', () => {})
  return cluster
}

/** `urls` are the addresses of the sentinels; `name` is what they call the master. */
export function makeRedisSentinel(urls: readonly string[], name: string, login: RedisLogin = {}) {
  const sentinel = createSentinel({
    name,
    sentinelRootNodes: urls.map((url) => {
      const { hostname, port } = new URL(url)
      return { host: hostname, port: port === '' ? SENTINEL_PORT : Number(port) }
    }),
    nodeClientOptions: { ...loginOf(login), ...boundsOf(urls, login) },
    sentinelClientOptions: boundsOf(urls, login),
  })
  sentinel.on('error', () => {})
  return sentinel
}

const SENTINEL_PORT = 26_379

const loginOf = ({ username, password }: RedisLogin) => ({
  ...(username !== undefined && { username }),
  ...(password !== undefined && { password }),
})

/** Nodes that a server names itself have no scheme: they speak TLS where the addresses of the configuration do. */
const boundsOf = (urls: readonly string[], { ca }: RedisLogin) => ({
  disableOfflineQueue: true,
  commandsQueueMaxLength: COMMANDS_MAX,
  socket: urls.some((url) => url.startsWith('rediss:'))
    ? { ...SOCKET, tls: true as const, ...(ca !== undefined && { ca }) }
    : SOCKET,
})
