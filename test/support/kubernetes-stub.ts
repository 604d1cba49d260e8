import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { pathOf } from './installed.ts'
import { KUBERNETES_FIELDS } from './kubernetes-fields.ts'
import type { Manifest } from './kubernetes-manifests.ts'

/**
 * `kubectl apply --dry-run=client` against a stub of an API server that has the kinds that we use and no object. kubectl
 * then checks that every kind is one that the server has, in a namespace where it must be; fields are not checked by it.
 */
export async function applyDry(manifests: readonly Manifest[]): Promise<{ done: readonly string[]; failed: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-kubectl-'))
  const server = createServer((req, res) => answer(new URL(req.url ?? '/', 'http://stub').pathname, res))
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  try {
    const file = join(folder, 'all.yaml')
    writeFileSync(file, manifests.map((one) => stringify(one)).join('---\n'))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const words = ['--server', url, '--cache-dir', join(folder, 'cache')]
    return await run([...words, 'apply', '--dry-run=client', '--validate=false', '-f', file], folder)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** With a home of its own, so that no cluster of the machine's owner is meant. */
function run(args: readonly string[], home: string): Promise<{ done: readonly string[]; failed: string }> {
  return new Promise((resolve) => {
    const child = spawn(pathOf('kubectl'), args, { env: { HOME: home, KUBECONFIG: join(home, 'none') } })
    let out = ''
    let err = ''
    child.stdout.on('data', (part: Buffer) => {
      out += part.toString()
    })
    child.stderr.on('data', (part: Buffer) => {
      err += part.toString()
    })
    child.on('close', (code) => {
      resolve({ done: out.trim().split('\n'), failed: code === 0 ? '' : err || `exit code ${code}` })
    })
  })
}

/** Plurals that are not the kind with an "s". */
const PLURALS: Readonly<Record<string, string>> = { NetworkPolicy: 'networkpolicies' }

function answer(path: string, res: ServerResponse): void {
  const [status, body] = answerTo(path)
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function answerTo(path: string): readonly [number, object] {
  const groups = Map.groupBy(Object.keys(KUBERNETES_FIELDS), (name) => name.split(' ')[0]!)
  if (path === '/api') return [200, { kind: 'APIVersions', versions: ['v1'] }]
  if (path === '/apis') {
    const names = [...groups.keys()].filter((group) => group !== 'v1')
    const list = names.map((groupVersion) => {
      const [name, version] = groupVersion.split('/')
      return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } }
    })
    return [200, { kind: 'APIGroupList', apiVersion: 'v1', groups: list }]
  }
  const group = path.replace(/^\/apis?\//, '')
  const kinds = groups.get(group)?.map((name) => name.split(' ')[1]!)
  if (kinds === undefined) {
    return [404, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }]
  }
  const resources = kinds.map((kind) => ({
    name: PLURALS[kind] ?? `${kind.toLowerCase()}s`,
    singularName: '',
    namespaced: kind !== 'Namespace',
    kind,
    verbs: ['create', 'get', 'list', 'patch'],
  }))
  return [200, { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: group, resources }]
}
