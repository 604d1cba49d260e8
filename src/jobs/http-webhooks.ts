import { createHmac } from 'node:crypto'
import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { isBackgroundJob, type JobNotice, jobCore } from '../domain/job.ts'
import type { NoticeSender } from '../lifecycle/job-ports.ts'

/**
 * Webhooks as Standard Webhooks has them, which OpenAI's clients check with `webhooks.unwrap`. A receiver's address is
 * somebody's wish: a name is looked up for each try, and the connection goes to the very addresses that were looked at, so
 * that a name cannot point elsewhere in between. Redirects are not followed.
 */
export interface Receiver {
  readonly tenant: string
  readonly url: string
  readonly secret: string
}

export interface WebhookOptions {
  readonly receivers: readonly Receiver[]
  readonly allowsPrivate: boolean
  readonly nowMs: () => number
  /** Told once for each receiver that cannot be told. */
  readonly complain: (problem: string) => void
}

const TIMEOUT_MS = 10_000

/** Addresses inside: this host, private networks, link-local ones (where clouds keep credentials), shared and reserved. */
const INSIDE = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  INSIDE.addSubnet(network, bits)
for (const [network, bits] of [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  INSIDE.addSubnet(network, bits, 'ipv6')

/** IPv4 inside IPv6 (`::ffff:10.0.0.1`) is judged as IPv4. */
export function isInside(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return INSIDE.check(mapped)
  const kind = isIP(address)
  return kind === 0 || /^::ffff:/i.test(address) || INSIDE.check(address, kind === 6 ? 'ipv6' : 'ipv4')
}

const INSIDE_ERROR = 'its address is loopback, private or link-local (jobs.webhookPrivateAddresses)'

/** Looks a name up and refuses it when any of its addresses is inside. */
const lookUpOutside: LookupFunction = (host, options, done) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    const first = found?.[0]
    if (error !== null || first === undefined) done(error ?? new Error('it has no address'), '', 0)
    else if (found.some(({ address }) => isInside(address))) done(new Error(INSIDE_ERROR), '', 0)
    else if (options.all === true) done(null, found)
    else done(null, first.address, first.family)
  })
}

export class WebhookSender implements NoticeSender {
  readonly #options: WebhookOptions
  readonly #byTenant: ReadonlyMap<string, Receiver>
  readonly #complained = new Set<string>()

  constructor(options: WebhookOptions) {
    this.#options = options
    this.#byTenant = new Map(options.receivers.map((receiver) => [receiver.tenant, receiver]))
  }

  send(notice: JobNotice): Promise<'told' | 'failed'> | undefined {
    const receiver = this.#byTenant.get(notice.job.tenantId)
    return receiver === undefined ? undefined : this.#post(receiver, notice)
  }

  async #post(receiver: Receiver, notice: JobNotice): Promise<'told' | 'failed'> {
    const { complain, nowMs, allowsPrivate } = this.#options
    const { body, headers } = signedNotice(notice, receiver.secret, Math.floor(nowMs() / 1_000))
    const why = await post(new URL(receiver.url), body, headers, allowsPrivate)
    if (why === undefined) {
      this.#complained.delete(receiver.tenant)
      return 'told'
    }
    if (!this.#complained.has(receiver.tenant))
      complain(`the webhook of tenant ${receiver.tenant} was not told of ${notice.job.id}: ${why}`)
    this.#complained.add(receiver.tenant)
    return 'failed'
  }
}

/** The body and its headers. The id is the same for every try, so that a receiver knows what it has seen. */
export function signedNotice({ job, ending, createdAtMs }: JobNotice, secret: string, nowS: number) {
  const id = `evt_${jobCore(job)}`
  const what = isBackgroundJob(job) ? 'response' : 'batch'
  const body = JSON.stringify({
    id,
    object: 'event',
    created_at: Math.floor(createdAtMs / 1_000),
    type: `${what}.${ending}`,
    data: { id: job.id },
  })
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${nowS}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'spillway',
    'webhook-id': id,
    'webhook-timestamp': String(nowS),
    'webhook-signature': `v1,${signature}`,
  }
  return { body, headers }
}

/** Undefined when it was taken, else why not. The answer is not read. */
async function post(
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  allowsPrivate: boolean,
): Promise<string | undefined> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // An address needs no look-up, so none would check it.
  if (!allowsPrivate && isIP(host) !== 0 && isInside(host)) return INSIDE_ERROR
  // Loaded by the first call: an import of node:http loads a second HTTP client, which costs 60 ms of every start.
  const { request: ask } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'))
  return new Promise((resolve) => {
    const call = ask(url, {
      method: 'POST',
      headers,
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(!allowsPrivate && { lookup: lookUpOutside }),
    })
    call.on('response', (response) => {
      const { statusCode = 0 } = response
      response.destroy()
      resolve(statusCode >= 200 && statusCode < 300 ? undefined : `it answered ${statusCode}`)
    })
    call.on('error', (error) => resolve(error.message))
    call.end(body)
  })
}
