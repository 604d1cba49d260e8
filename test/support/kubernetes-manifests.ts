import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { pathOf } from './installed.ts'

/** The objects of deploy/kubernetes: as they are written, and as Kustomize builds them where kubectl is there. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> }
  readonly spec?: Record<string, unknown>
  readonly data?: Record<string, string>
  readonly rules?: ReadonlyArray<Record<string, readonly string[]>>
  readonly roleRef?: { readonly name: string }
  readonly subjects?: ReadonlyArray<Record<string, string>>
}

const ROOT = join(import.meta.dirname, '..', '..', 'deploy', 'kubernetes')

export const OVERLAYS = readdirSync(join(ROOT, 'overlays')).sort()
export const COMPONENTS = readdirSync(join(ROOT, 'components')).sort()

export const readManifests = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((object): object is Manifest => object !== null)

const resourcesOf = (folder: string): string[] => {
  const [kustomization] = readManifests(readFileSync(join(ROOT, folder, 'kustomization.yaml'), 'utf8'))
  return (kustomization as unknown as { resources: string[] }).resources
}

/** What a folder's kustomization lists of its own: no patches, nothing of another folder. */
export const writtenIn = (folder: string): Manifest[] =>
  resourcesOf(folder)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => readManifests(readFileSync(join(ROOT, folder, file), 'utf8')))

/** Folders with whole objects: the base, every component, every overlay. */
export const FOLDERS = [
  'base',
  ...COMPONENTS.map((name) => `components/${name}`),
  ...OVERLAYS.map((name) => `overlays/${name}`),
]

export function build(folder: string): Manifest[] {
  const { stdout, stderr, status } = spawnSync(pathOf('kubectl'), ['kustomize', join(ROOT, folder)], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`kubectl kustomize ${folder}: ${stderr}`)
  return readManifests(stdout)
}

export const nameOf = ({ kind, metadata }: Manifest): string => `${kind}/${metadata.name}`
