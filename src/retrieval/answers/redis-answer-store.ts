import { hash } from 'node:crypto'
import { RESP_TYPES } from '@redis/client'
import type { Clock } from '../../base/clock.ts'
import { usToMs } from '../../base/clock.ts'
import type { KeptAnswer } from '../../lifecycle/ports.ts'
import type { RedisConnection } from '../../redis/redis-connection.ts'
import { forgetKeys, tenantName } from '../caches/redis-names.ts'
import { toUnit } from '../embedders/to-unit.ts'
import {
  type AnswerCandidate,
  type AnswerCandidates,
  type AnswerStore,
  type NewAnswer,
  SHELF_MAX,
  type Shelf,
} from './answer-store.ts'

/**
 * Answers that all gateways share. A shelf is a list of vectors, newest first, cut to its bound with each addition;
 * each answer is a key of its own, so that a lookup costs one read of vectors and, on a hit, one of an answer. Both
 * expire, and the server's `maxmemory` policy bounds them all. A vector takes one byte per dimension, which moves a
 * cosine by a thousandth and makes a full shelf 270 kB instead of a megabyte.
 */
export interface RedisAnswerOptions {
  readonly clock: Clock
  readonly connection: RedisConnection
  readonly prefix?: string
}

/** Bytes before the vector: the id (12), its expiry (8), the length of the vector (2); the words follow the vector. */
const ID_BYTES = 12
const HEAD_BYTES = ID_BYTES + 8 + 2

export class RedisAnswerStore implements AnswerStore {
  readonly #options: RedisAnswerOptions

  constructor(options: RedisAnswerOptions) {
    this.#options = options
  }

  async candidates(shelf: Shelf): Promise<AnswerCandidates | undefined> {
    const found = await this.#options.connection.ask((client) =>
      client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).lRange(this.#listOf(shelf), 0, SHELF_MAX - 1),
    )
    return found?.map(decode)
  }

  async read(shelf: Shelf, id: string): Promise<KeptAnswer | undefined> {
    const text = await this.#options.connection.ask((client) => client.get(this.#answerOf(shelf, id)))
    return typeof text === 'string' ? (JSON.parse(text) as KeptAnswer) : undefined
  }

  add(shelf: Shelf, entry: NewAnswer): void {
    const { clock, connection } = this.#options
    const ttlMs = Math.max(1, Math.ceil(usToMs(entry.expiresAt - clock.now())))
    const text = JSON.stringify(entry.answer)
    // The same answer to the same question has the same id, so that two gateways store it once.
    const bytes = Buffer.from(entry.vector.buffer, entry.vector.byteOffset, entry.vector.byteLength)
    const id = hash('sha256', Buffer.concat([bytes, Buffer.from(text)]), 'hex').slice(0, ID_BYTES)
    const list = this.#listOf(shelf)
    connection.tell((client) =>
      client
        .multi()
        .set(this.#answerOf(shelf, id), text, { PX: ttlMs })
        .lPush(list, encode(id, entry))
        .lTrim(list, 0, SHELF_MAX - 1)
        .pExpire(list, ttlMs)
        .exec(),
    )
  }

  async forgetTenant(tenantId: string): Promise<void> {
    await forgetKeys(this.#options.connection, `${this.#prefix(tenantId)}:*`)
  }

  close(): Promise<void> {
    return this.#options.connection.close()
  }

  #prefix(tenantId: string): string {
    return `${this.#options.prefix ?? 'spillway'}:answers:${tenantName(tenantId)}`
  }

  #listOf({ tenantId, name }: Shelf): string {
    return `${this.#prefix(tenantId)}:${name}`
  }

  #answerOf(shelf: Shelf, id: string): string {
    return `${this.#listOf(shelf)}:${id}`
  }
}

function encode(id: string, { vector, words, expiresAt }: NewAnswer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES + vector.length)
  head.write(id, 0, ID_BYTES, 'latin1')
  head.writeDoubleLE(expiresAt, ID_BYTES)
  head.writeUInt16LE(vector.length, ID_BYTES + 8)
  const largest = vector.reduce((max, part) => Math.max(max, Math.abs(part)), 0) || 1
  for (const [i, part] of vector.entries()) head.writeInt8(Math.round((part / largest) * 127), HEAD_BYTES + i)
  return Buffer.concat([head, Buffer.from(words)])
}

function decode(buffer: Buffer): AnswerCandidate {
  const vector = new Float32Array(buffer.readUInt16LE(ID_BYTES + 8))
  for (let i = 0; i < vector.length; i++) vector[i] = buffer.readInt8(HEAD_BYTES + i)
  return {
    id: buffer.toString('latin1', 0, ID_BYTES),
    vector: toUnit(vector),
    words: buffer.toString('utf8', HEAD_BYTES + vector.length),
    expiresAt: buffer.readDoubleLE(ID_BYTES),
  }
}
