import { describe, expect, it } from 'vitest'
import { ControlledWorld } from '../../test/support/controlled-world.ts'
import { hashKey } from '../config/key-hash.ts'
import { buildConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { TenancyState, TenancyStore, TenancyWrite } from '../domain/tenancy-store.ts'
import { digestOf } from '../gateway/authenticate.ts'
import type { TenancyDesk, TenancyReply } from '../gateway/tenancy-admin.ts'
import { DatabaseUnavailable } from '../store/database.ts'
import { MemoryTenancyStore } from '../store/memory-tenancy-store.ts'
import { ORG_WAITING_MAX } from './change-places.ts'
import { LOOK_US } from './live-tenancy.ts'

/** A store that a test takes away, loses answers of, or sets back. */
class FickleStore extends MemoryTenancyStore {
  isAway = false
  losesAnswer = false
  lostRevisions = 0

  override async load(): Promise<TenancyState> {
    this.#check()
    return super.load()
  }

  override async revision(): Promise<number> {
    this.#check()
    return (await super.revision()) - this.lostRevisions
  }

  override async write(write: TenancyWrite): Promise<number | 'stale'> {
    this.#check()
    const revision = await super.write(write)
    if (this.losesAnswer) throw new DatabaseUnavailable('The database did not answer in time.')
    return revision
  }

  #check(): void {
    if (this.isAway) throw new DatabaseUnavailable('The database is away.')
  }
}

const POOLS = [{ model: 'm', backend: { kind: 'simulated' } }]

function configOf(tenants: object[] = [], more: object = {}): Config {
  const filed = { id: 'filed', keys: [{ id: 'filed-1', hash: hashKey('sk-file') }] }
  const tree = { models: [{ name: 'm' }], pools: POOLS, tenants: [filed, ...tenants], ...more }
  return buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
}

const because = 'a test'

async function start(store: TenancyStore, isInUse = false): Promise<ControlledWorld> {
  const world = await ControlledWorld.start(configOf(), { tenancyStore: store, isInUse })
  await world.control.tenancy.tenancy.start()
  return world
}

const make = async ({ control: { tenancy } }: ControlledWorld): Promise<string> => {
  await tenancy.change('ada', { kind: 'create-org', id: 'acme', slos: ['steady'], because })
  await tenancy.change('ada', { kind: 'create-tenant', id: 'shop', orgId: 'acme', because })
  return secretOf(await tenancy.change('ada', { kind: 'create-key', id: 'web', tenantId: 'shop', because }))
}

function secretOf(reply: TenancyReply): string {
  if (reply.kind !== 'changed' || reply.secret === undefined) throw new Error(JSON.stringify(reply))
  return reply.secret
}

const isKnown = ({ control }: ControlledWorld, secret: string): boolean =>
  control.tenants.byHash(digestOf(secret)) !== undefined

describe('changes by an org’s administrators', () => {
  it('wait in a bounded number, and leave room for other orgs and for operators', async () => {
    const world = await start(new FickleStore())
    const { tenancy } = world.control
    const desks = new Map<string, TenancyDesk>()
    for (const org of Array.from({ length: 9 }, (_, i) => `org${i}`)) {
      await tenancy.change('ada', { kind: 'create-org', id: org, slos: ['steady'], because })
      await tenancy.change('ada', { kind: 'create-tenant', id: `${org}-t`, orgId: org, because })
      const key = { id: `${org}-k`, tenantId: `${org}-t`, role: 'org-admin', terms: { canManage: true } } as const
      const digest = digestOf(secretOf(await tenancy.change('ada', { kind: 'create-key', ...key, because })))
      desks.set(org, tenancy.asTenant({ digest }) as TenancyDesk)
    }
    const change = (org: string) =>
      desks.get(org)?.change({ kind: 'change-tenant', id: `${org}-t`, weight: 2, because }) as Promise<TenancyReply>
    const one = Array.from({ length: ORG_WAITING_MAX + 5 }, () => change('org0'))
    const others = [...desks.keys()]
      .slice(1)
      .flatMap((org) => Array.from({ length: ORG_WAITING_MAX }, () => change(org)))
    const operators = tenancy.change('ada', { kind: 'change-tenant', id: 'org0-t', weight: 3, because })
    const countOf = async (replies: ReadonlyArray<Promise<TenancyReply>>) =>
      (await Promise.all(replies)).filter(({ kind }) => kind === 'changed').length
    expect(await countOf(one)).toBe(ORG_WAITING_MAX)
    // Eighty of all orgs at once.
    expect(await countOf(others)).toBe(80 - ORG_WAITING_MAX)
    expect((await operators).kind).toBe('changed')
    expect((await change('org8')).kind).toBe('changed')
  })

  it('are not told which promises the platform has', async () => {
    const world = await start(new FickleStore())
    const { tenancy } = world.control
    await make(world)
    const key = { id: 'boss', tenantId: 'shop', role: 'org-admin', terms: { canManage: true } } as const
    const digest = digestOf(secretOf(await tenancy.change('ada', { kind: 'create-key', ...key, because })))
    const desk = tenancy.asTenant({ digest })
    const asked = await desk?.change({ kind: 'change-org', id: 'acme', slos: ['x'], because })
    expect(asked).toMatchObject({ kind: 'forbidden', refusal: { rule: 'role-allows' } })
    expect(JSON.stringify(asked)).not.toContain('steady')
  })
})

describe('the tenancy of a running gateway', () => {
  it('puts a key in force with its change, and tells the journal who and why', async () => {
    const world = await start(new FickleStore())
    const secret = await make(world)
    const caller = world.control.tenants.byHash(digestOf(secret))
    expect(caller).toMatchObject({
      key: { id: 'web', allowance: {} },
      tenant: { id: 'shop', orgId: 'acme', orgWeight: 1 },
    })
    expect(world.control.tenants.byHash(digestOf(secret))).toBe(caller)
    const entries = world.entries.filter(({ kind }) => kind === 'tenancy-changed')
    expect(entries).toHaveLength(3)
    expect(entries.at(-1)).toMatchObject({ edit: 'create-key', name: 'web', orgId: 'acme', by: 'ada', because })
    expect(JSON.stringify(entries)).not.toContain(secret)
  })

  it('gives both secrets of a rotation the same budgets', async () => {
    const world = await start(new FickleStore())
    const first = await make(world)
    const rotated = { kind: 'rotate-key', id: 'web', graceMs: 1_000, because } as const
    const second = secretOf(await world.control.tenancy.change('ada', rotated))
    const [one, two] = [first, second].map((secret) => world.control.tenants.byHash(digestOf(secret)))
    expect(one?.key).toBe(two?.key)
    expect(one?.tenant).toBe(two?.tenant)
  })

  it('goes on with known keys while the store is away, refuses changes, and takes them again later', async () => {
    const store = new FickleStore()
    const world = await start(store)
    const secret = await make(world)
    store.isAway = true
    const removal = { kind: 'remove-key', id: 'web', because } as const
    const away = await world.control.tenancy.change('ada', removal)
    expect(away).toMatchObject({ kind: 'refused', refusal: { code: 'registry-unavailable' } })
    expect(isKnown(world, secret)).toBe(true)
    store.isAway = false
    expect(await world.control.tenancy.change('ada', removal)).toMatchObject({ kind: 'changed' })
    expect(isKnown(world, secret)).toBe(false)
  })

  it('takes up a change whose answer was lost before it decides another', async () => {
    const store = new FickleStore()
    const world = await start(store)
    const secret = await make(world)
    store.losesAnswer = true
    const removal = { kind: 'remove-key', id: 'web', because } as const
    expect(await world.control.tenancy.change('ada', removal)).toMatchObject({ kind: 'refused' })
    store.losesAnswer = false
    const again = await world.control.tenancy.change('ada', removal)
    expect(again).toMatchObject({ kind: 'forbidden', refusal: { rule: 'exists' } })
    expect(isKnown(world, secret)).toBe(false)
  })

  it('keeps what is in force when the store has lost revisions, and refuses changes', async () => {
    const store = new FickleStore()
    const world = await start(store)
    const secret = await make(world)
    store.losesAnswer = true
    const rename = { kind: 'change-key', id: 'web', weight: 2, because } as const
    await world.control.tenancy.change('ada', rename)
    store.losesAnswer = false
    store.lostRevisions = 3
    const lost = await world.control.tenancy.change('ada', rename)
    expect(lost).toMatchObject({ kind: 'refused', refusal: { code: 'registry-unavailable' } })
    expect(JSON.stringify(lost)).toContain('came back at revision 1 ')
    expect(isKnown(world, secret)).toBe(true)
  })

  it('says that it cannot know, rather than that a key is wrong, until the store was read', async () => {
    const store = new FickleStore()
    const secret = await make(await start(store))
    store.isAway = true
    const next = await start(store, true)
    expect(isKnown(next, 'sk-file')).toBe(true)
    expect(next.control.tenants.whyNot(digestOf(secret))).toMatchObject({ code: 'keys-unavailable', blame: 'platform' })
    store.isAway = false
    await next.run(next.clock.now() + 6_000_000)
    expect(isKnown(next, secret)).toBe(true)
    expect(next.control.tenants.whyNot(digestOf('sk-wrong'))).toBeUndefined()
    await next.close()
  })

  it('starts with what is stored', async () => {
    const store = new FickleStore()
    const secret = await make(await start(store))
    const next = await start(store, true)
    expect(isKnown(next, secret)).toBe(true)
    expect(isKnown(next, 'sk-file')).toBe(true)
  })

  it('lets a file that is read again win, and gives back what the file lets go of', async () => {
    const world = await start(new FickleStore())
    const secret = await make(world)
    const own = hashKey('sk-own')
    const answer = await world.reload(configOf([{ id: 'shop', weight: 7, keys: [{ id: 'web', hash: own }] }]))
    expect(answer.kind).toBe('reloaded')
    expect(isKnown(world, secret)).toBe(false)
    expect(world.control.tenants.byHash(digestOf('sk-own'))?.tenant.weight).toBe(7)
    expect(world.complaints.join('\n')).toContain('the stored key web is not in force')
    await world.reload(configOf())
    expect(isKnown(world, secret)).toBe(true)
    expect(isKnown(world, 'sk-own')).toBe(false)
  })

  /** Two gateways that look for each other's changes. */
  async function startTwo(): Promise<readonly [ControlledWorld, ControlledWorld, FickleStore]> {
    const store = new FickleStore()
    const [one, two] = await Promise.all(
      [1, 2].map(() => ControlledWorld.start(configOf(), { tenancyStore: store, isInUse: true, isShared: true })),
    )
    if (one === undefined || two === undefined) throw new Error('two worlds were asked for')
    for (const { control } of [one, two]) await control.tenancy.tenancy.start()
    return [one, two, store]
  }

  it('ends a revoked secret here when the call returns, and at another gateway with its next look', async () => {
    const [one, two] = await startTwo()
    const secret = await make(one)
    await two.run(two.clock.now() + LOOK_US)
    expect([isKnown(one, secret), isKnown(two, secret)]).toEqual([true, true])
    await one.control.tenancy.change('ada', {
      kind: 'revoke-secret',
      id: 'web',
      hashPrefix: digestOf(secret),
      because,
    })
    expect([isKnown(one, secret), isKnown(two, secret)]).toEqual([false, true])
    // Half a second, and what the store takes to answer: within the two seconds that are promised.
    await two.run(two.clock.now() + LOOK_US)
    expect(isKnown(two, secret)).toBe(false)
    await Promise.all([one.close(), two.close()])
  })

  it('tells a rotated secret when every other gateway has looked for it', async () => {
    const [one, two] = await startTwo()
    const first = await make(one)
    await two.run(two.clock.now() + LOOK_US)
    let told: string | undefined
    const rotated = { kind: 'rotate-key', id: 'web', graceMs: 60_000, because } as const
    const telling = one.control.tenancy.change('ada', rotated).then((reply) => {
      told = secretOf(reply)
    })
    await one.run(one.clock.now() + LOOK_US)
    expect(told).toBeUndefined()
    await two.run(two.clock.now() + LOOK_US)
    await one.run(one.clock.now() + LOOK_US)
    await telling
    for (const world of [one, two]) {
      for (const secret of [first, told ?? '']) expect(isKnown(world, secret)).toBe(true)
    }
    await Promise.all([one.close(), two.close()])
  })

  it('goes on looking for others’ changes after the store was away', async () => {
    const [one, two, store] = await startTwo()
    const secret = await make(one)
    await two.run(two.clock.now() + LOOK_US)
    store.isAway = true
    await two.run(two.clock.now() + 10 * LOOK_US)
    expect(isKnown(two, secret)).toBe(true)
    store.isAway = false
    await one.control.tenancy.change('ada', { kind: 'remove-key', id: 'web', because })
    await two.run(two.clock.now() + LOOK_US)
    expect(isKnown(two, secret)).toBe(false)
    await Promise.all([one.close(), two.close()])
  })

  it('keeps a key’s id free of what an older key of that id was: its secrets, terms and grace', async () => {
    const world = await start(new FickleStore())
    const first = await make(world)
    const { tenancy } = world.control
    const change = (edit: Parameters<typeof tenancy.change>[1]) => tenancy.change('ada', edit)
    const second = secretOf(await change({ kind: 'rotate-key', id: 'web', graceMs: 60_000, because }))
    await change({ kind: 'change-key', id: 'web', terms: { models: [] }, because })
    await change({ kind: 'remove-key', id: 'web', because })
    const third = secretOf(await change({ kind: 'create-key', id: 'web', tenantId: 'shop', because }))
    expect([first, second, third].map((secret) => isKnown(world, secret))).toEqual([false, false, true])
    expect(tenancy.tenancy.tree.keys.get('web')?.terms.models).toBeUndefined()
  })

  it('revokes one of two secrets only by a beginning that means one', async () => {
    const store = new FickleStore()
    const world = await start(store)
    await make(world)
    const { tenancy } = world.control
    await tenancy.change('ada', { kind: 'rotate-key', id: 'web', graceMs: 60_000, because })
    const revoke = (hashPrefix: string) =>
      tenancy.change('ada', { kind: 'revoke-secret', id: 'web', hashPrefix, because })
    // Nothing begins so, and everything begins with nothing: neither may end a secret.
    for (const prefix of ['', 'zzzzzzzz']) expect(await revoke(prefix)).toMatchObject({ kind: 'forbidden' })
    const record = tenancy.tenancy.tree.keys.get('web') as { secrets: ReadonlyArray<{ hash: string }> }
    expect(record.secrets).toHaveLength(2)
    expect(await revoke(record.secrets[0]?.hash ?? '')).toMatchObject({ kind: 'changed' })
  })

  it('does not give a grace back when the clock is set back', async () => {
    const world = await start(new FickleStore())
    const first = await make(world)
    const { tenancy } = world.control
    await tenancy.change('ada', { kind: 'rotate-key', id: 'web', graceMs: 5_000, because })
    await world.run(world.clock.now() + 6_000_000)
    expect(isKnown(world, first)).toBe(false)
    // What has ended is gone with the next change, so no clock brings it back.
    await tenancy.change('ada', { kind: 'rotate-key', id: 'web', graceMs: 5_000, because })
    const record = tenancy.tenancy.tree.keys.get('web') as { secrets: ReadonlyArray<{ hash: string }> }
    expect(record.secrets.map(({ hash }) => hash)).not.toContain(digestOf(first))
    expect(record.secrets).toHaveLength(2)
  })

  it('gives the tenant its terms of storing, and tells when a tenant is gone, from the file or at run time', async () => {
    const world = await start(new FickleStore())
    const secret = await make(world)
    const { tenancy } = world.control
    await tenancy.change('ada', { kind: 'change-tenant', id: 'shop', storing: { ttlS: 60 }, because })
    expect(world.control.tenants.byHash(digestOf(secret))?.tenant.storing?.ttlS).toBe(60)
    const reason = { by: 'ada', because }
    await world.control.reload(() => configOf([{ id: 'shop' }, { id: 'other' }]), reason)
    // The file lets go of both: the stored tenant is in force again, the other one is gone.
    await world.control.reload(() => configOf(), reason)
    expect(world.removedTenants).toEqual(['other'])
    await tenancy.change('ada', { kind: 'remove-tenant', id: 'shop', because })
    expect(world.removedTenants).toEqual(['other', 'shop'])
  })

  it('screens the tenant as the platform does, or as it was told, also after a reload', async () => {
    const world = await start(new FickleStore())
    const secret = await make(world)
    const { control } = world
    const policy = () =>
      control.tenants
        .byHash(digestOf(secret))
        ?.tenant.screening?.rules.map(({ screen, direction, action }) => `${screen} ${direction} ${action}`)
    expect(policy()).toBeUndefined()
    const reload = (screening: object) => control.reload(() => configOf([], { screening }), { by: 'ada', because })
    await reload({ input: { pii: 'redact' } })
    expect(policy()).toEqual(['pii input redact'])
    const change = (screening: object | null) =>
      control.tenancy.change('ada', { kind: 'change-tenant', id: 'shop', screening, because } as never)
    await change({ pii: 'flag' })
    expect(policy()).toEqual(['pii input flag', 'pii output flag'])
    await reload({ secrets: 'block' })
    expect(policy()).toEqual(['pii input flag', 'pii output flag', 'secrets input block', 'secrets output block'])
    expect(await change({ injection: 'redact' })).toMatchObject({
      kind: 'forbidden',
      refusal: { rule: 'value-is-valid', param: 'screening.injection' },
    })
    expect(await change({ guard: 'flag' })).toMatchObject({ refusal: { param: 'screening.guard' } })
    await change(null)
    expect(policy()).toEqual(['secrets input block', 'secrets output block'])
  })

  it('follows another gateway on the same store', async () => {
    const store = new FickleStore()
    const [one, two] = [await start(store), await start(store)]
    const secret = await make(one)
    await two.control.tenancy.change('bob', { kind: 'remove-key', id: 'web', because })
    expect(isKnown(two, secret)).toBe(false)
    const late = { kind: 'change-key', id: 'web', weight: 2, because } as const
    expect(await one.control.tenancy.change('ada', late)).toMatchObject({
      kind: 'forbidden',
      refusal: { rule: 'exists' },
    })
    expect(isKnown(one, secret)).toBe(false)
  })
})
