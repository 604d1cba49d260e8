import type { Clock } from '../base/clock.ts'
import type { Replica } from '../domain/fleet.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import {
  type GenerateStyle,
  generateBody,
  generateTokensMax,
  inferBody,
  isReadyBody,
  makeGenerateReader,
  type OipMetadata,
  readInfer,
  readMetadata,
} from '../wire/oip.ts'
import { TokenLength } from '../wire/token-length.ts'
import { answerEachChoice } from './each-choice.ts'
import type { AnswerFormat } from './http-answer-reader.ts'
import { runAttempt } from './http-attempt.ts'
import { get, isOk } from './http-get.ts'
import { notReady, withGauges } from './http-probe.ts'
import { HttpUpstream, type HttpUpstreamOptions } from './http-upstream.ts'
import { callHeaders } from './trace-header.ts'

/**
 * Servers with the Open Inference Protocol: Triton, KServe, TorchServe. Tensors go to `infer`, text to Triton's
 * `generate` or `generate_stream`. These answer one choice per call: several choices are several calls.
 */
export interface HttpOipOptions extends HttpUpstreamOptions {
  /** The server's root: `http://triton:8000`. */
  readonly url: string
  /** The server's own name for the model. */
  readonly upstreamModel: string
  readonly version?: string
  readonly style?: Partial<GenerateStyle>
  /** Address of the metrics, if they are elsewhere: Triton has a port for them. */
  readonly metricsUrl?: string
  readonly clock?: Clock
}

export const HTTP_OIP_DEFAULTS: GenerateStyle = { runtime: 'vllm', template: 'plain' }

/** TorchServe's own health check, where the protocol is not switched on. */
const TORCHSERVE_PING = '/ping'

export class HttpOipBackend implements Backend {
  readonly #upstream: HttpUpstream
  readonly #metrics: { readonly upstream: HttpUpstream; readonly path: string } | undefined
  readonly #modelPath: string
  readonly #style: GenerateStyle
  readonly #clock: Clock | undefined
  readonly #tokenLength = new TokenLength()

  constructor(options: HttpOipOptions) {
    this.#upstream = new HttpUpstream(options)
    const version = options.version === undefined ? '' : `/versions/${encodeURIComponent(options.version)}`
    this.#modelPath = `/v2/models/${encodeURIComponent(options.upstreamModel)}${version}`
    this.#style = { ...HTTP_OIP_DEFAULTS, ...options.style }
    this.#clock = options.clock
    if (options.metricsUrl !== undefined) {
      const upstream = new HttpUpstream({ url: options.metricsUrl })
      this.#metrics = { upstream, path: upstream.path('') }
    }
  }

  generate(call: Call): Promise<Ending> {
    if (call.request.kind === 'tensors') return this.#infer(call)
    return answerEachChoice(call, (one) => this.#generateOne(one))
  }

  /** Ready means that the server and the model are ready: a healthy server may still be loading the model. */
  async probe(_replica: Replica): Promise<ReplicaReport> {
    const model = await get(this.#upstream, this.#upstream.path(`${this.#modelPath}/ready`))
    if (isOk(model)) {
      if (!isReadyBody(model.text)) return { isReady: false, because: 'the model is not ready' }
      return this.#metrics === undefined
        ? { isReady: true, because: 'the model is ready' }
        : withGauges(this.#metrics.upstream, this.#metrics.path)
    }
    if (model.status !== 404) return notReady('the model’s readiness', model)
    const ping = await get(this.#upstream, this.#upstream.path(TORCHSERVE_PING))
    return isOk(ping) ? { isReady: true, because: 'the server is well' } : notReady('the model’s readiness', model)
  }

  /** Names and shapes of the model's tensors; undefined when the server does not report them. */
  async metadata(): Promise<OipMetadata | undefined> {
    const got = await get(this.#upstream, this.#upstream.path(this.#modelPath))
    if (!isOk(got)) return undefined
    try {
      return readMetadata(JSON.parse(got.text))
    } catch {
      return undefined
    }
  }

  /** From the next call on with this key. */
  useKey(apiKey: string | undefined): void {
    this.#upstream.useKey(apiKey)
  }

  async close(): Promise<void> {
    await Promise.all([this.#upstream.close(), this.#metrics?.upstream.close()])
  }

  #infer(call: Call): Promise<Ending> {
    return this.#ask(call, `${this.#modelPath}/infer`, inferBody(call.request), { read: readInfer })
  }

  #generateOne(call: Call): Promise<Ending> {
    const { request, plan } = call
    const path = `${this.#modelPath}/${request.isStreamed ? 'generate_stream' : 'generate'}`
    const format = { ...makeGenerateReader(generateTokensMax(plan)), tokenLength: this.#tokenLength }
    return this.#ask(call, path, generateBody(request, plan, this.#style), format)
  }

  #ask(call: Call, path: string, body: string, format: Omit<AnswerFormat, 'redact'>): Promise<Ending> {
    const upstream = this.#upstream
    const headers = upstream.headers(...callHeaders(call))
    const ask = { path: upstream.path(path), headers, body }
    return runAttempt({
      call,
      format: { ...format, redact: (text) => upstream.redact(text) },
      clock: this.#clock,
      dispatch: (reader) => upstream.post(ask, reader),
    })
  }
}
