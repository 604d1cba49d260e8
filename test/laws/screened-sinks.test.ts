import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

/**
 * Law L14, from inside: there is one way from an engine to a client, and the screen stands in it. Engines write to the
 * relay, which is the only one that writes to a request's sink; whatever else is a sink is listed here, with what it does.
 */
const ROOT = join(import.meta.dirname, '../../src')

const files = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

const filesWith = (form: RegExp): string[] => files.flatMap(({ path, text }) => (form.test(text) ? [path] : [])).sort()

/** Classes that take an answer. All of them are handed what the relay has passed, or stand in front of the relay. */
const SINKS: Readonly<Record<string, string>> = {
  'engine-server/gathered-sink.ts': 'the simulated engine’s own server, which has no tenants',
  'gateway/http-sinks.ts': 'the client',
  'gateway/http-transit-sink.ts': 'the client',
  'gateway/http-whole-sink.ts': 'the client',
  'gateway/keeping-sink.ts': 'the archive, with placeholders, and the client behind it',
  'gateway/routes/infer.ts': 'counts, and keeps nothing',
  'gateway/stored-apart-sink.ts': 'the archive, with placeholders, and the client behind it',
  'lifecycle/answers/answer-text.ts': 'comparisons, with placeholders',
  'lifecycle/relay.ts': 'the relay itself',
  'lifecycle/screening/ask-guard.ts': 'the guard model’s words for its judge, which no client sees',
  'lifecycle/strict-sink.ts': 'the client, when the decision on its request is on the disk',
  'main/platform-vectors.ts': 'vectors for the platform’s own search',
  'sim/clients/client.ts': 'a simulated client, without text',
}

/** Where a request's sink is written to. */
const WRITERS: Readonly<Record<string, string>> = {
  'engine-server/gathered-sink.ts': 'the simulated engine’s own server, which has no tenants',
  'gateway/keeping-sink.ts': 'passes on what it was handed',
  'gateway/stored-apart-sink.ts': 'passes on what it was handed',
  'lifecycle/relay.ts': 'behind the screen',
  'lifecycle/strict-sink.ts': 'passes on what it was handed',
}

describe('law L14: between an engine and a client', () => {
  it('every sink is known', () => {
    expect(filesWith(/\bimplements\s+(?:\w+,\s*)*(?:Delta)?Sink\b/)).toEqual(Object.keys(SINKS).sort())
  })

  it('only the relay, and sinks that pass on what it wrote, write to a sink of their own', () => {
    expect(filesWith(/this\.#sink\.(?:write|start)\(/).filter((path) => !path.startsWith('backends/'))).toEqual(
      Object.keys(WRITERS).sort(),
    )
  })

  it('every story begins in serveRequest, which puts the relay before the sink', () => {
    const relays = filesWith(/new Relay\(/)
    expect(relays).toEqual(['lifecycle/serve-request.ts'])
    expect(filesWith(/\bbackends\.of\([^)]*\)\.generate\(/)).toEqual(['lifecycle/generate.ts'])
  })

  it('the relay passes nothing that its screen has not released', () => {
    const { text } = files.find(({ path }) => path === 'lifecycle/relay.ts')!
    // One place writes; it is reached with what the screen released, or where there is no screen.
    expect(text.match(/this\.#sink\.write\(/g)).toHaveLength(1)
    const calls = [...text.matchAll(/.*this\.#pass\(.*/g)].map(([line]) => line.trim())
    expect(calls).toHaveLength(3)
    for (const call of calls)
      expect(call).toMatch(/this\.#screened === undefined \? this\.#pass\(|released === undefined/)
  })
})
