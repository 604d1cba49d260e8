import { assert } from '../base/assert.ts'
import type { Clock } from '../base/clock.ts'
import type { Replica } from '../domain/fleet.ts'
import type { NativeDialect, Request, RequestKind } from '../domain/request.ts'
import { isAnswerScreened } from '../domain/screening.ts'
import type { Backend, Call, Ending, QuestionKind, ReplicaReport } from '../lifecycle/ports.ts'
import { type EmbeddingBody, inputsOf } from '../wire/embeddings.ts'
import { generatesForHealth } from '../wire/engine-gauges.ts'
import { nativeMessagesReader } from '../wire/messages-native-read.ts'
import { nativeBody } from '../wire/native-body.ts'
import { readNativeResponse } from '../wire/responses-native-read.ts'
import { TokenLengths } from '../wire/token-length.ts'
import { readEmbeddings, readUpstream } from '../wire/upstream.ts'
import { embeddingBody, type SentSalt, type UpstreamStyle, upstreamBody } from '../wire/upstream-body.ts'
import type { EngineSalt } from './engine-salt.ts'
import type { AnswerFormat } from './http-answer-reader.ts'
import { runAttempt } from './http-attempt.ts'
import { post } from './http-get.ts'
import { type ProbeStyle, probeOpenAi } from './http-probe.ts'
import { runTransit } from './http-transit.ts'
import { HttpUpstream, type HttpUpstreamOptions } from './http-upstream.ts'
import { RunningUsage, type RunningUsageWish } from './running-usage.ts'
import { callHeaders } from './trace-header.ts'

/**
 * Any engine behind an OpenAI-compatible URL: vLLM, SGLang, llama.cpp, TGI, Ollama, OpenAI and Azure, another Spillway.
 *
 * The backend calls undici's `dispatch` directly, because promise- and stream-based clients cost two to fourteen times
 * as much per request. Each replica has one pool of kept-alive connections.
 */
export interface HttpOpenAiOptions extends HttpUpstreamOptions {
  /**
   * Address including the version: `http://10.0.0.7:8000/v1`; for Azure the deployment with its version:
   * `https://NAME.openai.azure.com/openai/deployments/gpt-4o?api-version=2024-10-21`.
   */
  readonly url: string
  /** The engine's own name for the model; the public name when undefined. */
  readonly upstreamModel: string | undefined
  readonly style?: Omit<UpstreamStyle, 'asksRunningUsage'>
  /** Whether streams are asked for their usage in every frame. */
  readonly runningUsage?: RunningUsageWish
  /** Dialects beside chat that the engine speaks itself. */
  readonly dialects?: readonly NativeDialect[]
  /** How tenants are kept apart in the engine's prefix cache; absent: the engine has tenants of its own, as a peer. */
  readonly salt?: EngineSalt
  readonly probe?: ProbeStyle
  /** Paths under the address of a server that has others than OpenAI. Without pass-through and further dialects. */
  readonly pathOf?: (request: Request) => string
  /** Further headers of a call. */
  readonly moreHeaders?: (call: Call) => readonly string[]
  /** For the time limits of attempts; without a clock only silence ends an attempt. */
  readonly clock?: Clock
}

/** The only version that Anthropic's interface has had since 2023. */
const ANTHROPIC_VERSION = '2023-06-01'

/** Milliseconds for the answer to a question of ours: an engine that makes progress answers one token in less. */
const ASK_MS = 2_000
/** Said by front ends, whatever the engine does: no time left, too many requests. */
const NO_ANSWER: ReadonlySet<number> = new Set([408, 425, 429, 499])

/** Kinds of requests that have a path of OpenAI's. */
type PathKind = Exclude<RequestKind, 'tensors' | 'transit'>

export class HttpOpenAiBackend implements Backend {
  readonly #upstream: HttpUpstream
  readonly #options: Pick<
    HttpOpenAiOptions,
    'upstreamModel' | 'style' | 'probe' | 'clock' | 'moreHeaders' | 'dialects' | 'pathOf' | 'salt'
  >
  readonly #paths: Readonly<Record<PathKind, string>>
  readonly #redact = (text: string): string => this.#upstream.redact(text)
  readonly #tokenLengths = new TokenLengths()
  readonly #running: RunningUsage
  #isSlowToSayHealth = false
  /** Absent where every request costs money, and where an address takes no requests of OpenAI's. */
  readonly ask?: (replica: Replica, kind: QuestionKind) => Promise<boolean>

  constructor(options: HttpOpenAiOptions) {
    this.#upstream = new HttpUpstream(options)
    const { upstreamModel, style, probe, clock, moreHeaders, dialects, pathOf, salt } = options
    this.#running = new RunningUsage(style?.asksUsage === false ? 'never' : options.runningUsage)
    this.#options = {
      upstreamModel,
      ...(style === undefined ? {} : { style }),
      ...(probe === undefined ? {} : { probe }),
      ...(clock === undefined ? {} : { clock }),
      ...(moreHeaders === undefined ? {} : { moreHeaders }),
      ...(dialects === undefined ? {} : { dialects }),
      ...(pathOf === undefined ? {} : { pathOf }),
      ...(salt === undefined ? {} : { salt }),
    }
    const { kind = 'auto' } = probe ?? {}
    if (kind !== 'none' && kind !== 'answers' && pathOf === undefined)
      this.ask = (replica, asked) => this.#ask(replica, asked)
    this.#paths = {
      chat: this.#upstream.path('/chat/completions'),
      completion: this.#upstream.path('/completions'),
      embedding: this.#upstream.path('/embeddings'),
    }
  }

  generate(call: Call): Promise<Ending> {
    const { request, plan } = call
    const { upstreamModel, moreHeaders, salt } = this.#options
    const upstream = this.#upstream
    const { kind } = request
    assert(kind !== 'tensors', 'OpenAI has no tensors; the gateway knows')
    const model = upstreamModel ?? plan.model
    if (kind === 'transit') {
      assert(request.transit !== undefined, 'a transit has a body')
      const headers = [...callHeaders(call), ...(moreHeaders?.(call) ?? [])]
      return runTransit({ call, transit: request.transit, upstream, model, headers })
    }
    if (salt === undefined) return this.#attempt(call, kind, model)
    return salt.ask(request, (sentSalt) => this.#attempt(call, kind, model, sentSalt))
  }

  #attempt(call: Call, kind: PathKind, model: string, salt?: SentSalt): Promise<Ending> {
    const { request, plan } = call
    const { style, clock, moreHeaders, pathOf } = this.#options
    const upstream = this.#upstream
    const more = moreHeaders?.(call)
    const ours = callHeaders(call)
    if (more !== undefined) ours.push(...more)
    const relays = { keepsModel: request.text?.body['model'] === model }
    const native = this.#native(call, model, salt)
    if (native !== undefined) return native
    const headers = upstream.headersAnd(ours)
    const path = pathOf === undefined ? this.#paths[kind] : upstream.path(pathOf(request))
    const send = (format: AnswerFormat, body: string): Promise<Ending> =>
      runAttempt({
        call,
        format,
        clock,
        dispatch: (reader) => upstream.post({ path, headers, body }, reader),
      })
    if (kind === 'embedding') {
      const body = request.text?.body as EmbeddingBody
      return send({ ...this.#embeddingFormat(body), relays }, embeddingBody(request, model, salt))
    }
    const tokenLength = this.#tokenLengths.of(model)
    const format = { read: readUpstream, redact: this.#redact, tokenLength, relays }
    if (!this.#running.isAskedOf(request, tokenLength))
      return send(format, upstreamBody(request, plan, model, style, salt))
    return this.#running.ask((asksRunningUsage) =>
      send(format, upstreamBody(request, plan, model, { ...style, asksRunningUsage }, salt)),
    )
  }

  /** Asks in the client's own dialect, where engine and plan allow it. */
  #native(call: Call, model: string, salt: SentSalt): Promise<Ending> | undefined {
    const { request, plan } = call
    const dialect = request.text?.native?.dialect
    const { dialects, clock, moreHeaders } = this.#options
    if (dialect === undefined || dialects?.includes(dialect) !== true) return undefined
    // An answer that is screened is written anew, from the deltas of a chat: an engine's own events have text in more
    // places than a screen knows.
    if (request.screening !== undefined && isAnswerScreened(request.screening)) return undefined
    const body = nativeBody(request, plan, model, salt)
    if (body === undefined) return undefined
    const upstream = this.#upstream
    const headers = upstream.headers(...callHeaders(call), ...(moreHeaders?.(call) ?? []))
    if (dialect === 'messages') headers.push('anthropic-version', ANTHROPIC_VERSION)
    const format: AnswerFormat = {
      read: dialect === 'messages' ? nativeMessagesReader() : readNativeResponse,
      redact: this.#redact,
      tokenLength: this.#tokenLengths.of(model),
      relays: { keepsModel: request.text?.body['model'] === model, dialect },
    }
    const path = upstream.path(`/${dialect}`)
    return runAttempt({ call, format, clock, dispatch: (reader) => upstream.post({ path, headers, body }, reader) })
  }

  #embeddingFormat(body: EmbeddingBody): AnswerFormat {
    const inputCount = inputsOf(body).length
    return { read: (json) => readEmbeddings(json, inputCount), redact: this.#redact }
  }

  probe(_replica: Replica): Promise<ReplicaReport> {
    const onPage = (page: string): void => {
      this.#running.readPage(page)
      this.#options.salt?.readPage(page)
      this.#isSlowToSayHealth = generatesForHealth(page)
    }
    return probeOpenAi(this.#upstream, this.#options.probe ?? { kind: 'auto' }, onPage, this.#isSlowToSayHealth)
  }

  /** Puts a question that takes one token. A refusal of it is an answer, too: what is refused says nothing of the engine. */
  async #ask({ model: name }: Replica, kind: QuestionKind): Promise<boolean> {
    const { upstreamModel, style } = this.#options
    const model = upstreamModel ?? name
    const bound = { [style?.outputBound ?? 'max_tokens']: 1 }
    const questions = {
      chat: { model, messages: [{ role: 'user', content: '.' }], ...bound },
      completion: { model, prompt: '.', ...bound },
      embedding: { model, input: '.' },
    }
    const { status } = await post(this.#upstream, this.#paths[kind], JSON.stringify(questions[kind]), ASK_MS)
    return status >= 200 && status < 500 && !NO_ANSWER.has(status)
  }

  /** From the next call on with this key. */
  useKey(apiKey: string | undefined): void {
    this.#upstream.useKey(apiKey)
  }

  close(): Promise<void> {
    return this.#upstream.close()
  }
}
