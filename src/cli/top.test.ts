import { stripVTControlCharacters } from 'node:util'
import { expect, it } from 'vitest'
import { settled } from '../../test/support/entries.ts'
import { ConsoleFeed } from '../console/console-feed.ts'
import { topScreen } from './top.ts'

it('tells tenants, pools, replicas that are unwell and refusals, and no name moves the cursor', () => {
  const feed = new ConsoleFeed()
  const at = 5_000_000
  feed.take(settled({ at, tenantId: 'acme', isKept: true }))
  feed.take(settled({ at, tenantId: 'acme', isKept: false }))
  feed.take(
    settled({
      at,
      tenantId: 'evil\u001b[2J\u0007',
      outcome: 'rejected',
      isKept: undefined,
      because: 'too\u001b[31m late',
    }),
  )
  feed.take({ kind: 'replica-health', at, replicaId: 'r-1', health: 'ejected', because: 'slow' })
  const screen = stripVTControlCharacters(topScreen(feed.view(at, 0)))
  expect(screen).toContain('acme')
  expect(screen).toContain('50.0 %')
  expect(screen).toContain('r-1      ejected  slow')
  expect(screen).toContain('too late')
  expect(topScreen(feed.view(at, 0))).not.toContain('\u001b[2J')
  expect(screen.split('').filter((letter) => letter < ' ' && letter !== '\n')).toEqual([])
})
