import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { type CloudCredential, readCloudCredential } from '../wire/cloud-credential.ts'
import { CredentialError, FreshCredential } from './fresh-credential.ts'
import { type Got, get, isOk, put } from './http-get.ts'
import { HttpUpstream } from './http-upstream.ts'

/**
 * Where a credential comes from: keys that are configured, and for those that end a file that something else renews, a program of the operator's without a shell,
 * or the metadata server of the cloud that we run in. What a source says goes nowhere but into the credential: an error
 * names the source and its status, and not its words.
 */
export type CredentialSource =
  | { readonly kind: 'keys'; readonly accessKeyId: string; readonly secretKey: () => string | undefined }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'command'; readonly command: readonly string[]; readonly timeoutMs?: number }
  | ({ readonly kind: 'metadata'; readonly cloud: MetadataCloud; readonly url?: string } & EntraTerms)

export type MetadataCloud = 'google' | 'azure' | 'aws'

interface EntraTerms {
  /** What the token is for. */
  readonly resource?: string | undefined
  /** One of several identities of the machine. */
  readonly clientId?: string | undefined
}

/** Tools of clouds start slowly. */
const COMMAND_MS = 9_000
const CALL_MS = 3_000
const SAID_BYTES_MAX = 64 << 10
const AZURE_ML = 'https://ml.azure.com'
/** Seconds that the second and third question of AWS may take. */
const AWS_SESSION_S = '60'

const METADATA: Readonly<Record<MetadataCloud, { readonly url: string; readonly headers: Record<string, string> }>> = {
  google: { url: 'http://metadata.google.internal', headers: { 'metadata-flavor': 'Google' } },
  azure: { url: 'http://169.254.169.254', headers: { metadata: 'true' } },
  aws: { url: 'http://169.254.169.254', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': AWS_SESSION_S } },
}

export function liveCredential(source: CredentialSource): FreshCredential {
  return new FreshCredential({
    fetch: async () => credentialIn(await textOf(source)),
    now: () => Date.now(),
    after: (ms, callback) => {
      const timer = setTimeout(callback, ms)
      return () => clearTimeout(timer)
    },
  })
}

function credentialIn(text: string): CloudCredential {
  const credential = readCloudCredential(text, Date.now())
  if (credential !== undefined) return credential
  throw new CredentialError('its source gave neither a token nor keys')
}

function textOf(source: CredentialSource): Promise<string> {
  switch (source.kind) {
    case 'keys':
      return Promise.resolve(
        JSON.stringify({ AccessKeyId: source.accessKeyId, SecretAccessKey: source.secretKey() ?? '' }),
      )
    case 'file':
      return fileText(source.path)
    case 'command':
      return commandText(source.command, source.timeoutMs ?? COMMAND_MS)
    case 'metadata':
      return metadataText(source)
  }
}

async function fileText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new CredentialError(`the file ${path} cannot be read (${(error as { code?: string }).code})`)
  }
}

function commandText([program = '', ...args]: readonly string[], timeout: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout, killSignal: 'SIGKILL', maxBuffer: SAID_BYTES_MAX } as const
    execFile(program, args, options, (error, said) => {
      if (error === null) return resolve(said)
      const { code, signal } = error
      const how = code === 'ENOENT' ? 'is not installed' : signal ? `was ended by ${signal}` : `ended with ${code}`
      reject(new CredentialError(`the command ${program} ${how}`))
    })
  })
}

async function metadataText(source: CredentialSource & { readonly kind: 'metadata' }): Promise<string> {
  const { cloud, resource = AZURE_ML, clientId } = source
  const { url, headers } = METADATA[cloud]
  const server = (more: Record<string, string>): HttpUpstream =>
    new HttpUpstream({ url: source.url ?? url, headers: more, auth: 'none', connectionsMax: 1 })
  if (cloud === 'aws') return awsText(server(headers), (session) => server({ 'x-aws-ec2-metadata-token': session }))
  const query = new URLSearchParams({ 'api-version': '2018-02-01', resource })
  if (clientId !== undefined) query.set('client_id', clientId)
  const path = {
    google: '/computeMetadata/v1/instance/service-accounts/default/token',
    azure: `/metadata/identity/oauth2/token?${query.toString()}`,
  }[cloud]
  return closing(server(headers), async (upstream) => bodyOf(cloud, await get(upstream, path, CALL_MS)))
}

/** AWS wants a session first, and then the name of the role. */
async function awsText(first: HttpUpstream, withSession: (session: string) => HttpUpstream): Promise<string> {
  const session = await closing(first, async (upstream) =>
    bodyOf('aws', await put(upstream, '/latest/api/token', CALL_MS)),
  )
  const roles = '/latest/meta-data/iam/security-credentials/'
  return closing(withSession(session.trim()), async (upstream) => {
    const [role = ''] = bodyOf('aws', await get(upstream, roles, CALL_MS)).split('\n')
    return bodyOf('aws', await get(upstream, `${roles}${encodeURIComponent(role.trim())}`, CALL_MS))
  })
}

function bodyOf(cloud: MetadataCloud, got: Got): string {
  if (isOk(got)) return got.text
  const how = got.status === 0 ? 'does not answer' : `answered ${got.status}`
  throw new CredentialError(`the metadata server of ${cloud} ${how}`)
}

async function closing<T>(upstream: HttpUpstream, use: (upstream: HttpUpstream) => Promise<T>): Promise<T> {
  try {
    return await use(upstream)
  } finally {
    await upstream.close()
  }
}
