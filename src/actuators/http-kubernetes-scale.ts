import type { Clock } from '../base/clock.ts'
import type { Actuator, ScaleAnswer, ScaleOrder } from '../lifecycle/autoscale-ports.ts'
import { answerOfStatus, callAgain, type TryAnswer } from './call-again.ts'
import { callOnce, type HttpAnswer } from './http-call.ts'

/**
 * The scale subresource of the Kubernetes API: read with its `resourceVersion`, written with the same one, so that nobody
 * else's change is lost: when somebody wrote in between, the server says 409 and both steps are made again.
 *
 *   GET …/deployments/NAME/scale ─▶ {metadata: {resourceVersion}, spec: {replicas}} ─▶ PUT the same with other replicas
 */
export interface KubernetesScaleOptions {
  readonly clock: Clock
  readonly apiUrl: string
  /** `apps/v1/deployments`; resources of the core group are `v1/NAME`. */
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly tokenFile: string | undefined
  readonly caFile: string | undefined
  readonly timeoutMs: number
}

/** What we read of a Scale; everything else goes back as it came. */
interface Scale {
  readonly metadata: { readonly resourceVersion: string }
  readonly spec: { readonly replicas: number }
}

const CONFLICT = 409

export class KubernetesScale implements Actuator {
  readonly #options: KubernetesScaleOptions
  /** Written last: another number is another writer's. */
  #written: number | undefined

  constructor(options: KubernetesScaleOptions) {
    this.#options = options
  }

  async read(): Promise<number | undefined> {
    const read = await this.#read().catch(() => undefined)
    return read?.scale?.spec.replicas
  }

  scale({ to }: ScaleOrder, isOver?: () => boolean): Promise<ScaleAnswer> {
    return callAgain(this.#options.clock, () => this.#scaleOnce(to), isOver)
  }

  async #scaleOnce(to: number): Promise<TryAnswer> {
    const { answer, scale } = await this.#read()
    if (scale === undefined) {
      const told = answerOfStatus(answer.status, 'the API server')
      return told.kind === 'done' ? { kind: 'failed', because: 'the API server sent no Scale' } : told
    }
    const { replicas } = scale.spec
    const note =
      this.#written === undefined || replicas === this.#written
        ? undefined
        : `found ${replicas} where ${this.#written} was written: does another one write it, too?`
    if (replicas !== to) {
      const written = await this.#call('PUT', JSON.stringify({ ...scale, spec: { ...scale.spec, replicas: to } }))
      if (written.status === CONFLICT) return { kind: 'unlucky', because: 'somebody else wrote at the same time' }
      const told = answerOfStatus(written.status, 'the API server')
      if (told.kind !== 'done') return told
    }
    this.#written = to
    return { kind: 'done', ...(note !== undefined && { note }) }
  }

  async #read(): Promise<{ readonly answer: HttpAnswer; readonly scale: Scale | undefined }> {
    const answer = await this.#call('GET')
    return { answer, scale: answer.status === 200 ? readScale(answer.text) : undefined }
  }

  #call(method: 'GET' | 'PUT', body?: string): Promise<HttpAnswer> {
    const { apiUrl, resource, namespace, name, tokenFile, caFile, timeoutMs } = this.#options
    const parts = resource.split('/')
    const plural = parts.pop() ?? ''
    const root = parts.length === 1 ? `api/${parts[0]}` : `apis/${parts.join('/')}`
    const url = `${apiUrl.replace(/\/$/, '')}/${root}/namespaces/${namespace}/${plural}/${name}/scale`
    return callOnce({ url, method, timeoutMs, tokenFile, caFile, ...(body !== undefined && { body }) })
  }
}

function readScale(text: string): Scale | undefined {
  try {
    const said = JSON.parse(text) as Partial<Scale>
    // A Scale of nothing leaves the number out.
    const replicas = said.spec?.replicas ?? 0
    if (typeof said.metadata?.resourceVersion !== 'string' || !Number.isInteger(replicas)) return undefined
    return { ...said, metadata: said.metadata, spec: { ...said.spec, replicas } }
  } catch {
    return undefined
  }
}
