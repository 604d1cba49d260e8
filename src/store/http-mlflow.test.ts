import { inspect } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { json, type Reply, ScriptedServer, text } from '../../test/support/scripted-server.ts'
import { MlflowRegistry } from './http-mlflow.ts'

const TOKEN = 'a-secret-token-0123'
let server: ScriptedServer
afterEach(() => server.close())

const MODELS = 'GET /ml/api/2.0/mlflow/registered-models/search'
const VERSIONS = 'GET /ml/api/2.0/mlflow/model-versions/search'

async function start(routes: Record<string, Reply>, timeoutMs = 15_000): Promise<MlflowRegistry> {
  server = await ScriptedServer.start(routes)
  return new MlflowRegistry({ url: `${server.url}/ml/`, token: TOKEN, timeoutMs })
}

describe('an MLflow registry', () => {
  it('lists its models page by page', async () => {
    const pages: Reply = (asked, res) => {
      const isSecond = asked.query.get('page_token') === 'p2'
      const models = isSecond
        ? [{ name: 'ranker' }]
        : [{ name: 'chat', tags: [{ key: 'team', value: 'nlp' }], aliases: [{ alias: 'champion', version: '3' }] }]
      json({ registered_models: models, ...(isSecond ? {} : { next_page_token: 'p2' }) })(asked, res) as undefined
    }
    const registry = await start({ [MODELS]: pages })
    expect(await registry.models('c')).toEqual({
      kind: 'found',
      items: [
        { name: 'chat', description: '', tags: { team: 'nlp' }, aliases: { champion: '3' } },
        { name: 'ranker', description: '', tags: {}, aliases: {} },
      ],
    })
    expect(server.seen[0]?.query.get('filter')).toBe("name LIKE 'c%'")
    expect(server.seen[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`)
    await registry.close()
  })

  it('lists the versions of one', async () => {
    const version = {
      name: 'chat',
      version: 3,
      source: 's3://w/3',
      status: 'READY',
      run_id: 'r',
      creation_timestamp: 17,
    }
    const registry = await start({ [VERSIONS]: json({ model_versions: [{ ...version, aliases: ['champion'] }] }) })
    expect(await registry.versions("it's")).toMatchObject({
      kind: 'found',
      items: [
        { model: 'chat', version: '3', artifact: 's3://w/3', status: 'READY', aliases: ['champion'], createdAtMs: 17 },
      ],
    })
    expect(server.seen[0]?.query.get('filter')).toBe('name="it\'s"')
    await registry.close()
  })

  it.each([
    ['refuses', { [MODELS]: json({ message: TOKEN }, 401) }, 'the registry answered 401'],
    ['is not one', { [MODELS]: text('<html>') }, 'the registry sent something that is not JSON'],
    ['hangs', { [MODELS]: () => {} }, 'the registry could not be asked: 23'],
    ['never ends', { [MODELS]: json({ next_page_token: 'again' }) }, 'there are more than 100 pages'],
  ])('that %s is a value without secrets', async (what, routes, because) => {
    const registry = await start(routes, what === 'hangs' ? 300 : undefined)
    const answer = await registry.models()
    expect(answer.kind).toBe('failed')
    if (answer.kind === 'failed') expect(answer.because.slice(0, 30)).toBe(because.slice(0, 30))
    expect(inspect([answer, registry], { depth: 9 })).not.toContain(TOKEN)
    await registry.close()
  })
})
