import { createHash, createHmac } from 'node:crypto'
import { renameSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { EventStreamCodec } from '@smithy/core/event-streams'
import { SignatureV4 } from '@smithy/signature-v4'
import { TestFolder } from './child.ts'
import { type Behaviour, fails } from './fake-upstream.ts'

/**
 * What AWS does around a container: it checks signatures and puts streams into frames. Both by AWS's own packages, so that
 * our own signer and reader are held against somebody else's.
 */
export const AWS_TEST_REGION = 'eu-central-1'

export interface TestKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** Keys as something else writes them into a file; one pair is good at a time. */
export class KeyDesk {
  readonly #folder = new TestFolder()
  readonly file = `${this.#folder.path}/keys`
  keys!: TestKeys
  #count = 0

  constructor() {
    this.issue()
  }

  issue(): void {
    const no = ++this.#count
    this.keys = {
      accessKeyId: `ASIATEST${no}`,
      secretAccessKey: `secret-key-${no}-${'x'.repeat(20)}`,
      sessionToken: `secret-session-${no}-${'y'.repeat(20)}`,
    }
    const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken } = this.keys
    const Expiration = new Date(Date.now() + 3_600_000).toISOString()
    const said = { Version: 1, AccessKeyId, SecretAccessKey, SessionToken, Expiration }
    // Nobody reads half a file.
    renameSync(this.#folder.write('next', JSON.stringify(said)), this.file)
  }

  readonly guard = async (req: IncomingMessage, body: string): Promise<Behaviour | undefined> => {
    if (req.headers['x-amz-security-token'] !== this.keys.sessionToken) return awsFails(403, 'ExpiredTokenException')
    return (await isSigned(req, body, this.keys)) ? undefined : awsFails(403, 'InvalidSignatureException')
  }

  close(): void {
    this.#folder.remove()
  }
}

/** Whether AWS's own signer, with these keys, comes to the same signature. */
export async function isSigned(req: IncomingMessage, body: string, keys: TestKeys): Promise<boolean> {
  const given = /SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})$/.exec(req.headers.authorization ?? '')
  const stamp = String(req.headers['x-amz-date'])
  const at = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(stamp)
  if (given === null || at === null) return false
  const [, year, month, day, hour, minute, second] = at
  const signingDate = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  // AWS takes a stamp of five minutes at most.
  if (Math.abs(Date.now() - signingDate.getTime()) > 300_000) return false
  const names = given[1]!.split(';')
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://x')
  const signer = new SignatureV4({ service: 'sagemaker', region: AWS_TEST_REGION, credentials: keys, sha256: Sha256 })
  const signed = await signer.sign(
    {
      method: req.method ?? '',
      protocol: 'https:',
      hostname: String(req.headers.host),
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: {
        ...Object.fromEntries(names.map((name) => [name, String(req.headers[name])])),
        // The signer believes this one.
        'x-amz-content-sha256': createHash('sha256').update(body).digest('hex'),
      },
      body,
    },
    { signingDate, signableHeaders: new Set(names) },
  )
  return signed.headers['authorization']?.endsWith(`Signature=${given[2]}`) === true
}

class Sha256 {
  readonly #hash

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret as string)
  }

  update(piece: string | Uint8Array): void {
    this.#hash.update(piece)
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }

  reset(): void {}
}

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
  (text) => Buffer.from(text),
)

/** One message in AWS's own writing. */
export function awsFrame(body: string | Uint8Array, headers: Record<string, string> = {}): Buffer {
  const all = { ':message-type': 'event', ':event-type': 'PayloadPart', ...headers }
  const texts = Object.entries(all).map(([name, value]) => [name, { type: 'string', value }] as const)
  return Buffer.from(codec.encode({ headers: Object.fromEntries(texts), body: Buffer.from(body) }))
}

/** An error as the service writes it. */
export const awsFails = (status: number, type: string, body: object = { message: `no: ${type}` }): Behaviour =>
  fails(status, body, { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` })

interface Cuts {
  /** Most bytes of a container's stream in one message. */
  readonly partBytes?: number
  /** Most bytes that are written at once, across messages. */
  readonly writeBytes?: number
}

/** The container's stream in frames; everything else as it is. */
export function framed(behaviour: Behaviour, { partBytes, writeBytes }: Cuts = {}): Behaviour {
  return (call) => {
    const { res } = call
    const [writeHead, write] = [res.writeHead.bind(res), res.write.bind(res)]
    let isFramed = false
    res.writeHead = ((status: number, headers: Record<string, string>) => {
      isFramed = headers['content-type'] === 'text/event-stream'
      const type = isFramed ? 'application/vnd.amazon.eventstream' : headers['content-type']!
      return writeHead(status, { ...headers, 'content-type': type })
    }) as never
    res.write = ((piece: string | Buffer) => {
      if (!isFramed) return write(piece)
      const frames = cut(Buffer.from(piece as string), partBytes).map((part) => awsFrame(part))
      let isTaken = true
      for (const bytes of cut(Buffer.concat(frames), writeBytes)) isTaken = write(bytes)
      return isTaken
    }) as never
    return behaviour(call)
  }
}

function cut(bytes: Buffer, size = bytes.length): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}
