import type { Clock } from '../base/clock.ts'
import type { Replica } from '../domain/fleet.ts'
import type { Outlook } from '../domain/outlook.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import { inferBody, readInfer } from '../wire/oip.ts'
import { forwardHeaders, REGION_PATH, readRegionAnswer } from '../wire/region.ts'
import { runAttempt } from './http-attempt.ts'
import { get, isOk } from './http-get.ts'
import { HttpOpenAiBackend } from './http-openai.ts'
import { notReady } from './http-probe.ts'
import { HttpUpstream, type HttpUpstreamOptions } from './http-upstream.ts'
import { peerReport } from './peer-report.ts'
import { callHeaders } from './trace-header.ts'

/**
 * The gateway of another region, called like any OpenAI-compatible engine. Additional headers say whose request it is
 * and how much time is left. There is one per peer, shared by all models, so that a tick asks the peer once.
 */
export interface HttpPeerOptions extends HttpUpstreamOptions {
  /** Our own region. */
  readonly region: string
  readonly clock: Clock
}

interface Said {
  readonly outlooks: ReadonlyMap<string, Outlook> | undefined
  readonly because: string
  readonly roundTripUs: number
}

export class HttpPeerBackend implements Backend {
  readonly #clock: Clock
  readonly #engine: HttpOpenAiBackend
  /** A separate connection: probes must not queue behind answers. */
  readonly #probes: HttpUpstream
  readonly #tensors: HttpUpstream
  readonly #path: string
  readonly #forward: (call: Call) => string[]
  #asking: Promise<Said> | undefined

  constructor(options: HttpPeerOptions) {
    const { region, clock } = options
    this.#clock = clock
    this.#forward = ({ request }) => forwardHeaders(request, clock.now(), region)
    this.#engine = new HttpOpenAiBackend({
      ...options,
      upstreamModel: undefined,
      moreHeaders: (call) => this.#forward(call),
    })
    this.#tensors = new HttpUpstream({ ...options, url: options.url.replace(/\/v1\/*$/, '') })
    this.#probes = new HttpUpstream({ ...options, connectionsMax: 2 })
    this.#path = `${new URL(options.url).pathname.replace(/(\/v1)?\/*$/, '')}${REGION_PATH}`
  }

  generate(call: Call): Promise<Ending> {
    return call.request.kind === 'tensors' ? this.#infer(call) : this.#engine.generate(call)
  }

  /** Tensors have a separate path, beside OpenAI's. */
  #infer(call: Call): Promise<Ending> {
    const { request, plan } = call
    const upstream = this.#tensors
    const format = { read: readInfer, redact: (text: string) => upstream.redact(text) }
    const ask = {
      path: upstream.path(`/v2/models/${encodeURIComponent(plan.model)}/infer`),
      headers: upstream.headers(...callHeaders(call), ...this.#forward(call)),
      body: inferBody(request),
    }
    return runAttempt({ call, format, clock: this.#clock, dispatch: (reader) => upstream.post(ask, reader) })
  }

  async probe({ model }: Replica): Promise<ReplicaReport> {
    const { outlooks, because, roundTripUs } = await this.#ask()
    if (outlooks === undefined) return { isReady: false, because }
    return peerReport(outlooks, model, roundTripUs)
  }

  /** From the next call on with this key. */
  useKey(apiKey: string | undefined): void {
    for (const one of [this.#engine, this.#tensors, this.#probes]) one.useKey(apiKey)
  }

  async close(): Promise<void> {
    await Promise.all([this.#engine.close(), this.#probes.close(), this.#tensors.close()])
  }

  /** All models of one tick share one report. */
  #ask(): Promise<Said> {
    this.#asking ??= this.#reallyAsk().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #reallyAsk(): Promise<Said> {
    const askedAt = this.#clock.now()
    const got = await get(this.#probes, this.#path)
    const roundTripUs = this.#clock.now() - askedAt
    if (!isOk(got)) return { outlooks: undefined, because: notReady('the region', got).because, roundTripUs }
    const outlooks = readRegionAnswer(got.text)
    const because = outlooks === undefined ? 'its answer is not that of a Spillway gateway' : 'the region answers'
    return { outlooks, because, roundTripUs }
  }
}
