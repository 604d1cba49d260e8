import { randomFillSync } from 'node:crypto'

/**
 * Request ids: 96 random bits, unguessable and unique across processes. Random bytes are fetched a page at a time: the
 * call into the system costs more than making the id.
 */
const ID_BYTES = 12
const PAGE_BYTES = ID_BYTES * 512

export function makeRequestIds(): () => string {
  const page = Buffer.alloc(PAGE_BYTES)
  let at = PAGE_BYTES
  return () => {
    if (at === PAGE_BYTES) {
      randomFillSync(page)
      at = 0
    }
    at += ID_BYTES
    return `req_${page.toString('hex', at - ID_BYTES, at)}`
  }
}
