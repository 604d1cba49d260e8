import { expect, it } from 'vitest'
import { Presence } from './presence.ts'

it('notes a loss once, and the return after it; a start is no return', () => {
  const presence = new Presence()
  expect([presence.notice(1, 0), presence.notice(2, 1), presence.notice(3, 2), presence.returnedAt]).toEqual([
    false,
    false,
    false,
    undefined,
  ])
  expect([presence.notice(4, 0), presence.notice(5, 0), presence.returnedAt]).toEqual([true, false, undefined])
  expect([presence.notice(6, 1), presence.returnedAt]).toEqual([false, 6])
  expect([presence.notice(7, 0), presence.notice(8, 3), presence.returnedAt]).toEqual([true, false, 8])
})
