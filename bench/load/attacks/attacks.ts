/**
 * Attacks on a gateway by one client with a valid key, or by a stranger: what is sent, and over how many connections.
 * Each costs its sender little. A body may be several megabytes, so it is made where it is sent from.
 */
export interface Attack {
  readonly name: string
  readonly about: string
  readonly connections: number
  readonly path: string
  readonly contentType?: string
  /** Undefined: a wrong key, another one each time. */
  readonly key?: string
  readonly makeBody: () => Buffer
  /** The last byte is never sent: the connection and what has arrived stay until the server gives up. */
  readonly isHeld?: boolean
  /** The size is not announced. */
  readonly isChunked?: boolean
}

const KEY = 'sk-demo-acme'
const MODEL = 'spill-small'
/** The gateway's own limit for JSON. */
const BODY_BYTES = 4 * 1024 * 1024 - 1024

const chat = (content: string, more = ''): Buffer =>
  Buffer.from(`{"model":"${MODEL}","max_tokens":1,"messages":[{"role":"user","content":"${content}"}]${more}}`)

const longText = (): string => 'A weir holds the water back. '.repeat(Math.floor(BODY_BYTES / 29) - 8)

const part = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'

export const ATTACKS: readonly Attack[] = [
  {
    name: 'tensor-rows',
    about: '79 bytes that name 110,000,000 rows without data',
    connections: 8,
    path: '/v2/models/spill-embed/infer',
    key: KEY,
    makeBody: () => Buffer.from('{"inputs":[{"name":"text","shape":[110000000,0],"datatype":"BYTES","data":[]}]}'),
  },
  {
    name: 'form-parts',
    about: '26 MB of 500,000 empty parts of a form',
    connections: 8,
    path: '/v1/files',
    contentType: 'multipart/form-data; boundary=x',
    key: KEY,
    makeBody: () => Buffer.from(`${part.repeat(500_000)}--x--`),
  },
  {
    name: 'json-keys',
    about: '4 MB of JSON with 300,000 keys',
    connections: 16,
    path: '/v1/chat/completions',
    key: KEY,
    makeBody: () => chat('Hi.', `,"x":{${Array.from({ length: 300_000 }, (_, i) => `"${i}":1`).join(',')}}`),
  },
  {
    name: 'json-depth',
    about: '4 MB of open brackets',
    connections: 16,
    path: '/v1/chat/completions',
    key: KEY,
    makeBody: () => Buffer.from('['.repeat(BODY_BYTES)),
  },
  {
    name: 'json-values',
    about: '2 MB of a million token ids, as many as are allowed',
    connections: 16,
    path: '/v1/completions',
    key: KEY,
    makeBody: () => Buffer.from(`{"model":"${MODEL}","max_tokens":1,"prompt":[${'1,'.repeat(1_000_000)}1]}`),
  },
  {
    name: 'long-text',
    about: '4 MB of ordinary text, far over the context',
    connections: 16,
    path: '/v1/chat/completions',
    key: KEY,
    makeBody: () => chat(longText()),
  },
  {
    name: 'long-text-chunked',
    about: 'the same, without an announced size',
    connections: 16,
    path: '/v1/chat/completions',
    key: KEY,
    isChunked: true,
    makeBody: () => chat(longText()),
  },
  {
    name: 'held-bodies',
    about: '200 bodies of 4 MB that lack their last byte',
    connections: 200,
    path: '/v1/chat/completions',
    key: KEY,
    isHeld: true,
    makeBody: () => chat(longText()),
  },
  {
    name: 'wrong-keys',
    about: 'a wrong key with every request',
    connections: 32,
    path: '/v1/chat/completions',
    makeBody: () => chat('Hi.'),
  },
]
