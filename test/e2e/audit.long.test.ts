import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { cli } from '../support/audit-cli.ts'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { CrashingServer, lostBefore } from '../support/ledger-crash.ts'
import { ACME_KEY, authorization, MODEL, postJson, startPlatform, testTree } from '../support/start-platform.ts'

/** Audits of two regions, and of a server that is killed. */
const PEER_KEY = 'sk-test-peer'

describe('two regions that witness each other’s audits', { timeout: 120_000 }, () => {
  const folder = new TestFolder()
  afterAll(() => folder.remove())

  it('keep each other’s checkpoints, and list each other’s heads in their own', async () => {
    const treeOf = (region: string, peer: { region: string; url: string }) =>
      testTree({
        audit: { enabled: true, path: `${folder.path}/${region}`, name: region, checkpointS: 1 },
        pools: [{ model: MODEL, region, backend: { kind: 'simulated', profile: 'h100-llama-8b' } }],
        regions: { local: region, peers: [{ ...peer, apiKey: PEER_KEY, hash: hashKey(PEER_KEY) }] },
      })
    // Nobody is there yet whom the first could tell.
    const eu = await startPlatform(treeOf('eu', { region: 'us', url: 'http://127.0.0.1:9/v1' }))
    const us = await startPlatform(treeOf('us', { region: 'eu', url: eu.baseURL }))
    const witnessed = (at: string, of: string): string => `${folder.path}/${at}/witnessed/${of}%2F0`
    await eventually('eu has it', () => existsSync(witnessed('eu', 'us')) || undefined, 30_000)
    const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 1 }
    await (await postJson(`${eu.baseURL}/chat/completions`, body, authorization(ACME_KEY))).json()
    const head = (): string => readFileSync(`${folder.path}/eu/0/head`, 'utf8')
    await eventually('eu lists us', () => /^peer us\/0 \d+ \S{44}$/m.test(head()) || undefined, 30_000)
    const asTenant = await postJson(`${eu.address}/spillway/witness`, { notes: [] }, authorization(ACME_KEY))
    expect(asTenant.status).toBe(401)
    await us.close()
    await eu.close()
    // Cut both chain and checkpoints of the one: the other knows better.
    const [file = ''] = readdirSync(witnessed('eu', 'us'))
    const args = ['--folder', `${folder.path}/us`, '--checkpoints', `${witnessed('eu', 'us')}/${file}`]
    expect(await cli('audit', 'verify', ...args)).toMatchObject({ code: 0 })
    const segment = `${folder.path}/us/0/000000000000001.spool`
    writeFileSync(segment, readFileSync(segment).subarray(0, readFileSync(segment).indexOf('{"v":1') - 4))
    for (const name of readdirSync(`${folder.path}/us/0`)) {
      if (name.endsWith('.checkpoints')) rmSync(`${folder.path}/us/0/${name}`)
    }
    expect(await cli('audit', 'verify', ...args)).toMatchObject({ code: 1, out: expect.stringContaining('cut-tail') })
  })
})

describe('the audit of a server that is killed under load', { timeout: 240_000 }, () => {
  const folder = new TestFolder()
  const path = `${folder.path}/audit`
  const server = new CrashingServer(folder, { audit: { enabled: true, path } })
  afterAll(async () => {
    await server.end()
    folder.remove()
  })

  it('has every answer that was given before but those of the last group commit, and is sound', async () => {
    const clients = 8
    for (const answers of [40, 60]) await server.loadUntilKilled(await server.start(), clients, answers)
    await server.start()
    await server.stop()
    const { out } = await cli('audit', 'export', '--folder', path, '--kind', 'inference.settled')
    const ids = out.split('\n').map((line) => (JSON.parse(line) as { request: string }).request)
    expect(new Set(ids).size).toBe(ids.length)
    const has = new Set(ids)
    const { answers } = server.notes
    expect(lostBefore(answers, (id) => has.has(id), clients)).toEqual([])
    expect(answers.filter(({ id }) => has.has(id)).length).toBeGreaterThan(answers.length / 2)
    expect(await cli('audit', 'verify', '--folder', path)).toMatchObject({ code: 0 })
  })
})
