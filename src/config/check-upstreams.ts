import type { RegistryEntry } from '../domain/registry.ts'
import {
  addressProblem,
  controlCharacterProblem,
  headerNameProblem,
  headerValueProblem,
  hostProblem,
} from './check-address.ts'
import { isObject, type Path, type Problem } from './explain.ts'
import { isProfileFile } from './profile-problem.ts'
import type { PoolConfig, Settings } from './schema.ts'
import { settings } from './settings.ts'

/**
 * What may the configuration of engines name? Two sets of rules. `checkUpstreams` is for everybody who enters an
 * address: the configuration file, and administrators through the registry. `checkEntered` is for administrators alone,
 * who change a server that is not theirs: they may name only such environment variables and files as the configuration
 * file allows, because a server that sends a variable or a file to an address of one's choice gives it away.
 */
export type Upstreams = Settings['upstreams']

/** Sources of replicas that send a token to an API server. */
const KUBE_SOURCES = ['kubernetes', 'inferencePool'] as const

/** Addresses and headers of the pools, and of everything else that the gateway calls. */
export function checkUpstreams({ pools, regions, retrieval, upstreams }: Settings): Problem[] {
  const { hostsAllowed } = upstreams
  const at = (path: Path, text: string | undefined): Problem[] => (text === undefined ? [] : [{ path, text }])
  const address = (path: Path, url: string | undefined): Problem[] =>
    url === undefined ? [] : at(path, addressProblem(url, hostsAllowed))
  const secret = (path: Path, key: string | undefined): Problem[] =>
    key === undefined ? [] : at(path, headerValueProblem(key))
  return [
    ...pools.flatMap((pool, i) => checkPool(pool, ['pools', i], hostsAllowed)),
    ...regions.peers.flatMap(({ url, urls = [], apiKey }, i) => [
      ...address(['regions', 'peers', i, 'url'], url),
      ...urls.flatMap((one, nth) => address(['regions', 'peers', i, 'urls', nth], one)),
      ...secret(['regions', 'peers', i, 'apiKey'], apiKey),
    ]),
    ...address(['retrieval', 'url'], retrieval.url),
    ...secret(['retrieval', 'apiKey'], retrieval.apiKey),
    ...address(['retrieval', 'embedder', 'url'], retrieval.embedder.url),
    ...secret(['retrieval', 'embedder', 'apiKey'], retrieval.embedder.apiKey),
  ]
}

function checkPool({ backend, replicas }: PoolConfig, path: Path, hostsAllowed: readonly string[]): Problem[] {
  if (backend.kind === 'simulated') return []
  const under = [...path, 'backend']
  const { url, discover, headers, apiKey } = backend
  const urls: Array<readonly [Path, string | undefined]> = [
    [[...under, 'url'], url],
    [[...under, 'metricsUrl'], backend.kind === 'http-oip' ? backend.metricsUrl : undefined],
    ...KUBE_SOURCES.map((source): readonly [Path, string | undefined] => [
      [...under, 'discover', source, 'apiUrl'],
      discover?.[source]?.apiUrl,
    ]),
    ...(Array.isArray(replicas) ? (replicas as string[]) : []).map((one, i): readonly [Path, string] => [
      [...path, 'replicas', i],
      one,
    ]),
  ]
  const found: Array<readonly [Path, string | undefined]> = [
    ...urls.map(([at, one]) => [at, one === undefined ? undefined : addressProblem(one, hostsAllowed)] as const),
    ...(discover?.dns?.servers ?? []).map(
      (server, i) => [[...under, 'discover', 'dns', 'servers', i], hostProblem(server, hostsAllowed)] as const,
    ),
    ...Object.entries(headers).map(
      ([name, value]) => [[...under, 'headers', name], headerNameProblem(name) ?? headerValueProblem(value)] as const,
    ),
    [[...under, 'apiKey'], apiKey === undefined ? undefined : headerValueProblem(apiKey)],
  ]
  const texts = controlCharacters({ ...backend, url: undefined, headers: undefined }, under)
  return [...found.flatMap(([at, text]) => (text === undefined ? [] : [{ path: at, text }])), ...texts]
}

/** Texts with control characters, wherever they are in this value. */
function controlCharacters(value: unknown, path: Path): Problem[] {
  if (typeof value === 'string') {
    const text = controlCharacterProblem(value)
    return text === undefined ? [] : [{ path, text }]
  }
  if (Array.isArray(value)) return value.flatMap((one, i) => controlCharacters(one, [...path, i]))
  return isObject(value) ? Object.entries(value).flatMap(([key, one]) => controlCharacters(one, [...path, key])) : []
}

/** What an administrator may not enter, in one entry of the registry. */
export function checkEntered({ kind, body }: RegistryEntry, { upstreams }: Pick<Settings, 'upstreams'>): Problem[] {
  const odd = controlCharacters(body, [])
  if (odd.length > 0) return odd
  if (kind === 'replica') {
    const text = addressProblem(String(body['url']), upstreams.hostsAllowed)
    return text === undefined ? [] : [{ path: ['url'], text }]
  }
  const backend = kind === 'pool' ? (body['backend'] as EnteredBackend | undefined) : undefined
  return backend === undefined ? [] : checkBackend(backend, upstreams)
}

/** The parts of a pool's backend that name variables and files. */
interface EnteredBackend {
  readonly apiKeyEnv?: string
  readonly tls?: Readonly<Record<string, unknown>>
  readonly credential?: Readonly<Record<string, unknown>>
  readonly profile?: unknown
  readonly profiles?: unknown
  readonly discover?: { readonly [K in (typeof KUBE_SOURCES)[number]]?: Readonly<Record<string, unknown>> }
}

function checkBackend(backend: EnteredBackend, { keyVariables, folders }: Upstreams): Problem[] {
  const { apiKeyEnv, tls, credential, discover, profile, profiles } = backend
  const files = [
    { path: ['backend', 'credential', 'file'], file: credential?.['file'] },
    ...['caFile', 'certFile', 'keyFile'].map((name) => ({ path: ['backend', 'tls', name], file: tls?.[name] })),
    ...KUBE_SOURCES.flatMap((source) =>
      ['caFile', 'tokenFile'].map((name) => ({
        path: ['backend', 'discover', source, name],
        file: discover?.[source]?.[name],
      })),
    ),
    ...profileFiles(['backend', 'profile'], [profile]),
    ...profileFiles(['backend', 'profiles'], Array.isArray(profiles) ? profiles : []),
  ]
  const problems = files.flatMap(({ path, file }): Problem[] =>
    typeof file !== 'string' || isBelow(file, folders) ? [] : [{ path, text: fileProblem(folders) }],
  )
  if (apiKeyEnv !== undefined && !mayName(apiKeyEnv, keyVariables)) {
    const text = `is "${apiKeyEnv}", which upstreams.keyVariables does not allow (${keyVariables.join(', ')}). Choose another variable, or allow this one in the configuration file`
    problems.push({ path: ['backend', 'apiKeyEnv'], text })
  }
  for (const source of ['command', 'metadata']) {
    if (credential?.[source] === undefined) continue
    // It would be run here, or be ours, for an address of the administrator's choice.
    const text = 'may not be entered here. Write the pool into the configuration file'
    problems.push({ path: ['backend', 'credential', source], text })
  }
  for (const source of KUBE_SOURCES) {
    const { apiUrl, tokenFile } = discover?.[source] ?? {}
    if (apiUrl === undefined || tokenFile !== undefined) continue
    // The pod's own token would be sent to an address of the administrator's choice.
    const text = 'needs a tokenFile of its own here. Add one below upstreams.folders, or write the pool into the file'
    problems.push({ path: ['backend', 'discover', source, 'apiUrl'], text })
  }
  return problems
}

const profileFiles = (path: string[], named: readonly unknown[]): Array<{ path: string[]; file: string }> =>
  named.flatMap((file) => (typeof file === 'string' && isProfileFile(file) ? [{ path, file }] : []))

const fileProblem = (folders: readonly string[]): string =>
  folders.length === 0
    ? 'is a file, and upstreams.folders allows none here. Write the pool into the configuration file, or allow a folder there'
    : `is not below a folder of upstreams.folders (${folders.join(', ')}). Move the file there`

/** The file is below one of the folders as both are written. Links are not followed: a folder must have none. */
function isBelow(file: string, folders: readonly string[]): boolean {
  if (!file.startsWith('/') || file.split('/').some((part) => part === '..' || part === '.')) return false
  return folders.some((folder) => file.startsWith(`${folder.replace(/\/+$/, '')}/`))
}

/** Variables of our own settings hold our own secrets: no pattern allows them. */
const OWN_VARIABLES = [
  ...settings.flatMap(({ env }) => env ?? []),
  'SPILLWAY_ADMIN_KEY',
  'SPILLWAY_KEY',
  'SPILLWAY_CONFIG',
]

function mayName(variable: string, patterns: readonly string[]): boolean {
  if (OWN_VARIABLES.includes(variable)) return false
  return patterns.some((pattern) => {
    const words = pattern.split('*').map((word) => word.replace(/[^A-Za-z0-9_]/g, ''))
    return new RegExp(`^${words.join('[A-Za-z0-9_]*')}$`).test(variable)
  })
}
