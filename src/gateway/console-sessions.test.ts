import { describe, expect, it } from 'vitest'
import { makeSecretPart } from '../base/live-ids.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { CONSOLE_COOKIE, ConsoleSessions } from './console-sessions.ts'

const DIGEST = 'a'.repeat(64)
const cookie = (id: string): string => `theme=dark; ${CONSOLE_COOKIE}=${id}`

function make(clock = new VirtualClock(1_000_000), secret = 'of the cell'): ConsoleSessions {
  return new ConsoleSessions({ clock, secret: () => secret, makeId: makeSecretPart })
}

describe('ConsoleSessions', () => {
  it('are known to every gateway with the same secret, and to no other', () => {
    const id = make().begin(DIGEST)
    expect(make().of(cookie(id))).toMatchObject({ digest: DIGEST })
    expect(make(undefined, 'of another cell').of(cookie(id))).toBeUndefined()
    expect(id).not.toContain(DIGEST.slice(0, 8))
    expect(make().begin(DIGEST)).not.toBe(id)
  })

  it('end after twelve hours, and when they are left', async () => {
    const clock = new VirtualClock(1_000_000)
    const sessions = make(clock)
    const [id, left] = [sessions.begin(DIGEST), sessions.begin(DIGEST)]
    sessions.end(cookie(left))
    expect(sessions.of(cookie(left))).toBeUndefined()
    await clock.run(clock.now() + 12 * 3_600 * 1_000_000 - 1)
    expect(sessions.of(cookie(id))).toBeDefined()
    await clock.run(clock.now() + 2)
    expect(sessions.of(cookie(id))).toBeUndefined()
  })

  it('do not open with a changed, cut or respelled cookie', () => {
    const sessions = make()
    const id = sessions.begin(DIGEST)
    for (let i = 0; i < id.length; i++) {
      const other = id[i] === 'A' ? 'B' : 'A'
      expect(sessions.of(cookie(id.slice(0, i) + other + id.slice(i + 1))), `letter ${i}`).toBeUndefined()
    }
    for (const wrong of ['', 'x', id.slice(0, -1), `${id}A`, `${id}%`, 'A'.repeat(300)])
      expect(sessions.of(cookie(wrong)), wrong).toBeUndefined()
    expect(sessions.of(undefined)).toBeUndefined()
  })

  it('remember a thousand that were left', () => {
    const sessions = make()
    const first = sessions.begin(DIGEST)
    sessions.end(cookie(first))
    for (let i = 0; i < 999; i++) sessions.end(cookie(`x${i}`))
    expect(sessions.of(cookie(first))).toBeUndefined()
    sessions.end(cookie('one more'))
    expect(sessions.of(cookie(first))).toBeDefined()
  })
})
