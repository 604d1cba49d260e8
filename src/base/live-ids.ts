import { randomFillSync } from 'node:crypto'

/**
 * Ids: 96 random bits, unguessable and unique across processes. Random bytes are fetched a page at a time: the
 * call into the system costs more than making the id.
 */
const ID_BYTES = 12
const PAGE_BYTES = ID_BYTES * 512

export function makeRequestIds(): () => string {
  const makeId = makeIds()
  return () => `req_${makeId()}`
}

/** Secret of a process's prefix index, 32 bits: without it no client can choose prompts whose names collide there. */
export const makePrefixSalt = (): number => randomFillSync(new Uint32Array(1))[0] as number

/** A seed that nobody outside can guess: 52 random bits. */
export function makeSecretSeed(): number {
  const [high, low] = randomFillSync(new Uint32Array(2)) as unknown as [number, number]
  return (high >>> 12) * 2 ** 32 + low
}

/** The random part of a key's secret: 32 bytes in base64url, which nobody can guess and no seed repeats. */
export const makeSecretPart = (): string => randomFillSync(Buffer.alloc(32)).toString('base64url')

export function makeIds(): () => string {
  const page = Buffer.alloc(PAGE_BYTES)
  let at = PAGE_BYTES
  return () => {
    if (at === PAGE_BYTES) {
      randomFillSync(page)
      at = 0
    }
    at += ID_BYTES
    return page.toString('hex', at - ID_BYTES, at)
  }
}
