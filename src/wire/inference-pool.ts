import { type KubeItem, type KubeReader, objectOf, objectsOf } from './kubernetes-objects.ts'

/**
 * InferencePools of the Gateway API Inference Extension (`inference.networking.k8s.io/v1`), and the pods that they select.
 * A pool names labels and ports; every port of a pod is an engine of its own. Who picks among them (`endpointPickerRef`)
 * is not read: here Spillway does.
 */
export interface InferencePool extends KubeItem {
  /** All of them; none if the pool names none, and then it selects nobody. */
  readonly labels: Readonly<Record<string, string>>
  readonly ports: readonly number[]
  /** False where engines are said to speak something other than HTTP/1.1. */
  readonly isPlain: boolean
}

export interface EnginePod extends KubeItem {
  /** Undefined for a pod that cannot be asked: not ready, or without an address. */
  readonly address: string | undefined
  readonly state: 'ready' | 'draining'
}

/** The API allows as many. */
const PORTS_MAX = 8
const LABELS_MAX = 64

export const readInferencePool: KubeReader<InferencePool> = (pool, item) => {
  const spec = objectOf(pool['spec'])
  const labels = Object.entries(objectOf(objectOf(spec['selector'])['matchLabels']))
  const ports = objectsOf(spec['targetPorts']).map(({ number }) => number)
  return {
    ...item,
    labels: Object.fromEntries(labels.slice(0, LABELS_MAX).map(([name, value]) => [name, String(value)])),
    ports: ports.filter((port): port is number => Number.isInteger(port)).slice(0, PORTS_MAX),
    isPlain: (spec['appProtocol'] ?? 'http') === 'http',
  }
}

/** A pod that is being deleted and still ready serves what it has: it drains. */
export const readEnginePod: KubeReader<EnginePod> = (pod, item) => {
  const status = objectOf(pod['status'])
  const isReady = objectsOf(status['conditions']).some(({ type, status: is }) => type === 'Ready' && is === 'True')
  const isGoing = objectOf(pod['metadata'])['deletionTimestamp'] !== undefined
  const address = isReady && typeof status['podIP'] === 'string' ? status['podIP'] : undefined
  return { ...item, address, state: isGoing ? 'draining' : 'ready' }
}

/** As the API's `labelSelector` wants it; the same labels in another order are the same text. */
export const labelSelector = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(',')
