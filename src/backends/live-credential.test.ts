import { afterEach, describe, expect, it } from 'vitest'
import { TestFolder } from '../../test/support/child.ts'
import { json, type Reply, ScriptedServer, text } from '../../test/support/scripted-server.ts'
import { type CredentialSource, liveCredential } from './live-credential.ts'

const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const take = async (source: CredentialSource) => liveCredential(source).take()
const node = (script: string) => [process.execPath, '-e', script]

describe('a file', () => {
  it('has the credential, or says that it cannot be read', async () => {
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const path = folder.write('token', 'a-token\n')
    expect(await take({ kind: 'file', path })).toMatchObject({ token: 'a-token' })
    await expect(take({ kind: 'file', path: `${path}.gone` })).rejects.toThrow(/token\.gone cannot be read \(ENOENT\)/)
  })
})

describe('a command', () => {
  it('prints the credential', async () => {
    const command = node('console.log(JSON.stringify({ accessToken: process.argv[1], expires_on: 9999999999 }))')
    const taken = await take({ kind: 'command', command: [...command, 'a-b'] })
    expect(taken).toEqual({ kind: 'token', token: 'a-b', endsAtMs: 9_999_999_999_000 })
  })

  it.each([
    ['fails', node('console.log("s3cret"); console.error("s3cret"); process.exit(3)'), /ended with 3$/],
    ['is not there', ['/no/such/tool'], /the command \/no\/such\/tool is not installed$/],
    ['prints nothing', node(''), /neither a token nor keys$/],
    ['prints words', node('console.log("not s3cret")'), /neither a token nor keys$/],
    ['prints without end', node('for (;;) console.log("s3cret".repeat(1000))'), /the command .* ended/],
    ['hangs', node('setInterval(() => {}, 1000)'), /was ended by SIGKILL$/],
  ])('that %s says so, without its words', async (how, command, wanted) => {
    const timeoutMs = how === 'hangs' ? 300 : undefined
    const error = await take({ kind: 'command', command, ...(timeoutMs && { timeoutMs }) }).then(
      () => undefined,
      (thrown: Error) => thrown,
    )
    expect(error?.message).toMatch(wanted)
    // The program and its arguments are the operator's; what it printed is not.
    expect(error?.message.replace(command[0]!, '')).not.toContain('s3cret')
  })
})

describe('a metadata server', () => {
  async function served(routes: Record<string, Reply>): Promise<ScriptedServer> {
    const server = await ScriptedServer.start(routes)
    closers.push(() => server.close())
    return server
  }

  it('of Google is asked as Google wants it', async () => {
    const server = await served({
      'GET /computeMetadata/v1/instance/service-accounts/default/token': json({ access_token: 'g', expires_in: 3_599 }),
    })
    expect(await take({ kind: 'metadata', cloud: 'google', url: server.url })).toMatchObject({ token: 'g' })
    expect(server.seen[0]?.headers['metadata-flavor']).toBe('Google')
  })

  it('of Azure is told what the token is for, and whose it is', async () => {
    const server = await served({ 'GET /metadata/identity/oauth2/token': json({ access_token: 'a', expires_on: '1' }) })
    const source = { kind: 'metadata', cloud: 'azure', url: server.url } as const
    await expect(take({ ...source, clientId: 'me' })).rejects.toThrow('has ended already')
    expect(server.seen[0]?.headers['metadata']).toBe('true')
    expect(Object.fromEntries(server.seen[0]!.query)).toEqual({
      'api-version': '2018-02-01',
      resource: 'https://ml.azure.com',
      client_id: 'me',
    })
  })

  it('of AWS gives a session, a role and its keys', async () => {
    const roles = '/latest/meta-data/iam/security-credentials/'
    const keys = {
      Code: 'Success',
      AccessKeyId: 'ASIA',
      SecretAccessKey: 's',
      Token: 't',
      Expiration: '2099-01-01T00:00:00Z',
    }
    const server = await served({
      'PUT /latest/api/token': text('session-1'),
      [`GET ${roles}`]: text('gateway\n'),
      [`GET ${roles}gateway`]: json(keys),
    })
    expect(await take({ kind: 'metadata', cloud: 'aws', url: server.url })).toMatchObject({
      kind: 'keys',
      accessKeyId: 'ASIA',
      sessionToken: 't',
    })
    expect(server.seen.map(({ headers }) => headers['x-aws-ec2-metadata-token'])).toEqual([
      undefined,
      'session-1',
      'session-1',
    ])
  })

  it('that refuses, or is not there, is named with its status alone', async () => {
    const server = await served({})
    const { url } = server
    await expect(take({ kind: 'metadata', cloud: 'google', url })).rejects.toThrow(
      /^the metadata server of google answered 404$/,
    )
    await server.close()
    closers.length = 0
    await expect(take({ kind: 'metadata', cloud: 'aws', url })).rejects.toThrow(
      /^the metadata server of aws does not answer$/,
    )
  })
})
