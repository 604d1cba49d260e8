import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsOf } from '../../test/support/cpu-time.ts'
import { arrived, fault, refused, settled, story } from '../../test/support/entries.ts'
import { maskFreeText } from '../base/mask-free-text.ts'
import type { Entry, ReplicaReported } from '../domain/entry.ts'
import type { Request } from '../domain/request.ts'
import { LogLines, type LogOptions } from './log.ts'
import { Metrics } from './metrics.ts'

function linesOf(entries: readonly Entry[], options: Partial<LogOptions> = {}): string[] {
  const lines: string[] = []
  const log = new LogLines({ destination: { write: (line) => lines.push(line) }, ...options })
  for (const entry of entries) log.take(entry)
  return lines
}

describe('LogLines', () => {
  it('writes a line for every order of replicas, and warns of one that failed', () => {
    const order = { kind: 'scale-ordered', at: 1_000, poolId: 'p', from: 1, to: 3, leavingCount: 0 } as const
    const lines = linesOf([
      { ...order, outcome: 'done', because: 'more' },
      { ...order, outcome: 'failed', because: 'the API server answered 403' },
    ])
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'info', msg: 'replicas ordered', pool: 'p', from: 1, to: 3 },
      { level: 'warn', msg: 'replicas could not be ordered', because: 'the API server answered 403' },
    ])
  })

  it('writes one line for a settled request, with its numbers', () => {
    const lines = linesOf(story())
    expect(lines.length).toBe(1)
    expect(lines[0]?.endsWith('\n')).toBe(true)
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      level: 'info',
      time: 2_000,
      ticket: 'req_1',
      tenant: 'acme',
      model: 'llama-8b',
      band: 'interactive',
      rung: 'full',
      outcome: 'completed',
      release: 'llama-8b@1',
      pool: 'pool-1',
      replica: 'replica-1',
      attempts: 1,
      promptTokens: 100,
      cachedTokens: 40,
      outputTokens: 10,
      totalMs: 1_000,
      waitMs: 250,
      firstTokenMs: 500,
      slowestTokenMs: 25,
      msg: 'request settled',
    })
  })

  it('has the number of the process where there are several', () => {
    const [line] = linesOf(story(), { process: 3 })
    expect(JSON.parse(line ?? '')).toMatchObject({ process: 3, ticket: 'req_1' })
    expect(linesOf(story(), { process: 3, format: 'pretty' })[0]).toContain('process=3')
  })

  it('says why, when it did not end well, and what answered, when it was another model', () => {
    const [line] = linesOf([refused({ servedModel: 'tiny' })])
    const expected = { outcome: 'rejected', code: 'lane-full', because: 'lane is full', servedModel: 'tiny' }
    expect(JSON.parse(line ?? '')).toMatchObject(expected)
  })

  it('writes an error when an engine denies us, and a line when it answers again', () => {
    const entry = { kind: 'replica-denied', at: 5_000, replicaId: 'r1', poolId: 'p' } as const
    const lines = linesOf([
      { ...entry, isDenied: true, because: 'The engine answered 401: it does not accept our key.' },
      { ...entry, isDenied: false, because: 'The engine answers again.' },
    ])
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'error', msg: 'replica denied: mend its key, address or quota', replica: 'r1', pool: 'p' },
      { level: 'info', msg: 'replica no longer denied', because: 'The engine answers again.' },
    ])
  })

  it('writes a line for every change of a rollout, and warns of a rollback', () => {
    const change = {
      kind: 'rollout-changed',
      at: 5_000,
      model: 'm',
      from: 'm@1',
      to: 'm@2',
      step: 0,
      by: 'judge',
    } as const
    const lines = linesOf([
      { ...change, change: 'started', percent: 5, because: 'the configuration names a canary' },
      { ...change, change: 'rolled-back', percent: 0, because: 'worse: it refuses more' },
    ])
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'info', msg: 'rollout started', model: 'm', canary: 'm@2', percent: 5 },
      { level: 'warn', msg: 'rollout rolled-back', by: 'judge', because: 'worse: it refuses more' },
    ])
  })

  it('writes a line for every order of an administrator, and warns while something is out of force', () => {
    const by = { at: 5_000, by: 'ada', because: 'a loop in its client' } as const
    const lines = linesOf([
      { kind: 'tenant-paused', tenantId: 'acme', isPaused: true, ...by },
      { kind: 'mode-changed', mode: 'observe', ...by },
      { kind: 'mode-changed', mode: 'enforce', ...by },
    ])
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'warn', msg: 'tenant paused', tenant: 'acme', by: 'ada', because: 'a loop in its client' },
      { level: 'warn', msg: 'admission: observe', by: 'ada' },
      { level: 'info', msg: 'admission: enforce' },
    ])
  })

  it('writes faults as errors, and only them at level error', () => {
    const lines = linesOf([...story(), fault({ ticketId: 'req_9' })], { level: 'error' })
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { level: 'error', time: 3_000, where: 'gateway', because: 'it broke', ticket: 'req_9', msg: 'fault' },
    ])
    expect(linesOf([fault()], { level: 'silent' })).toEqual([])
  })

  it('tells when a replica changes, not each time that it reports', () => {
    const report = (isReady: boolean): ReplicaReported => ({
      kind: 'replica-reported',
      at: 1,
      replicaId: 'r1',
      isReady,
      because: isReady ? 'ok' : 'connection refused',
    })
    const lines = linesOf([true, true, false, false, true].map(report), { format: 'pretty' })
    expect(lines).toEqual([
      '00:00:00.000 replica ready replica=r1 because=ok\n',
      '00:00:00.000 WARN replica not ready replica=r1 because="connection refused"\n',
      '00:00:00.000 replica ready replica=r1 because=ok\n',
    ])
  })

  it('is short for a person', () => {
    const [line] = linesOf([settled({ at: 1_763_175_787_125_000, arrivedAt: 1_763_175_786_312_600 })], {
      format: 'pretty',
    })
    expect(line).toMatch(
      /^03:03:07\.125 request settled ticket=req_1 tenant=acme model=llama-8b band=interactive .*\n$/,
    )
    expect(line).toContain(' totalMs=812.4 ')
  })

  it('lets no value forge a line or a field', () => {
    const nasty = 'x\n{"level":"error"} tenant=root \u001b[31m'
    const pretty = linesOf([settled({ tenantId: nasty, because: nasty, outcome: 'failed' })], { format: 'pretty' })
    expect(pretty.length).toBe(1)
    expect(pretty[0]?.slice(0, -1)).not.toMatch(/\p{Cc}/u)
    const [json] = linesOf([settled({ tenantId: nasty })])
    expect(json?.slice(0, -1)).not.toContain('\n')
    expect(JSON.parse(json ?? '')).toMatchObject({ tenant: nasty })
  })

  it('writes nothing for entries that are only steps on the way', () => {
    expect(linesOf(story().slice(0, -1))).toEqual([])
    expect(linesOf([arrived()])).toEqual([])
  })
})

const PROMPT = 'Tell me about the Kestrel merger of 14 March'
const SECRET = 'sk-spillway-3f9a77c1d2e84b'

/** A request that carries both, as the gateway makes it. */
const request: Request = {
  id: 'req_1',
  tenant: {
    id: 'acme',
    orgId: 'org',
    weight: 1,
    slo: { name: 'chat', ttftUs: 1, interTokenUs: 1, totalUs: 1 },
    bands: ['interactive'],
    allowance: {},
    bidMax: 0,
    contract: 'degrade',
    queueUsMax: 1,
  },
  key: { id: 'key_1', tenantId: 'acme', weight: 1, allowance: {} },
  kind: 'chat',
  model: 'llama-8b',
  segments: [{ role: 'user', tokens: 9 }],
  prefixHashes: [],
  outputTokensMax: 10,
  choiceCount: 1,
  isStreamed: true,
  band: 'interactive',
  bid: 0,
  slo: { name: 'chat', ttftUs: 1, interTokenUs: 1, totalUs: 1 },
  arrivedAt: 1,
  deadlineAt: 2,
  text: { body: { messages: [{ role: 'user', content: PROMPT }], api_key: SECRET } },
}

function errorOf(work: () => unknown): string {
  try {
    work()
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

describe('what a client sent', () => {
  it('never appears, whatever way it took into an entry', () => {
    const because = [
      errorOf(() => JSON.parse(PROMPT)),
      errorOf(() => JSON.parse(`{"content": "${PROMPT}", }`)),
      errorOf(() => new URL(PROMPT)),
      `engine said 400: {"error": {"message": "cannot answer '${PROMPT}'"}}`,
      `engine said 401: bad key ${SECRET}`,
      `header authorization: Bearer ${SECRET} refused`,
      `unterminated "${PROMPT}`,
    ]
    // Nobody should put the request itself into an entry. If somebody does, it still stays out.
    const smuggled = { request, text: request.text, prompt: PROMPT, key: SECRET }
    const detail = { prompt: PROMPT, key: SECRET }
    const entries: Entry[] = because.flatMap((reason, i) => [
      { ...arrived(), ...smuggled },
      { ...settled({ outcome: 'failed', because: reason }), ...smuggled },
      refused({
        because: reason,
        refusal: { code: 'too-big', because: reason, blame: 'request', retryAfterUs: 0, detail },
      }),
      { ...fault({ because: reason }), ...smuggled },
      { kind: 'replica-reported', at: 1, replicaId: `r${i}`, isReady: false, because: reason },
      { kind: 'platform-changed', at: 1, state: 'ready', because: reason },
    ])
    const metrics = new Metrics({ version: '0', nodeVersion: '0' })
    for (const entry of entries) metrics.take(entry)
    const json = linesOf(entries)
    const written = [...json, ...linesOf(entries, { format: 'pretty' }), metrics.text()].join('')
    expect(json.length).toBe(because.length * 5)
    for (const word of ['Tell', 'Kestrel', 'merger', 'March', 'sk-spillway', '3f9a77c1d2e84b'])
      expect(written).not.toContain(word)
  })
})

describe('maskFreeText', () => {
  it.each([
    ['lane is full', 'lane is full'],
    ["the client's reader didn't move", "the client's reader didn't move"],
    ["bad 'don't tell anyone' here", 'bad "…" here'],
    ['Unexpected token \'T\', "Tell me ab"... is not valid JSON', 'Unexpected token "…", "…"... is not valid JSON'],
    ['one\ntwo\u001b[2J three', 'one two [2J three'],
    ['api_key=abc, retry', '[masked], retry'],
    ['  ', ''],
  ])('%j becomes %j', (text, expected) => {
    expect(maskFreeText(text)).toBe(expected)
  })

  const wild = fc.oneof(fc.string({ unit: 'binary-ascii', maxLength: 400 }), fc.string({ unit: 'grapheme' }))

  it('leaves one short line without the quoted part, whatever it is given', () =>
    fc.assert(
      fc.property(wild, wild, (text, quoted) => {
        const masked = maskFreeText(text)
        expect(masked.length).toBeLessThanOrEqual(200)
        expect(masked).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
        const inner = quoted.replaceAll('"', '')
        expect(maskFreeText(`said "${inner}"!`)).toBe('said "…"!')
      }),
    ))

  it('does not choke on a megabyte', async () => {
    const cpuMs = await cpuMsOf(() => {
      maskFreeText("'".repeat(1_000_000))
      maskFreeText('bearer '.repeat(200_000))
    })
    expect(cpuMs).toBeLessThan(2_000)
  })
})
