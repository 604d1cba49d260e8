import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DockerEngine, noDockerBecause } from '../support/docker-engine.ts'
import { eventually } from '../support/eventually.ts'

/**
 * The whole compose file on a Docker Engine of the test's own: built without a network, started in the order of health,
 * then every service is killed in turn and networks are cut, and the platform answers as docs/operations/compose.md
 * promises. Grafana is left out: Debian has no package of it.
 */
const why = noDockerBecause()
/** A busy machine of two cores, with ten containers on it. */
const SOON_MS = 180_000
const KEY = 'sk-demo-acme'
const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }

describe.skipIf(why !== undefined)(`docker compose up --build${why === undefined ? '' : ` (not here: ${why})`}`, () => {
  let engine: DockerEngine
  let front = ''
  let prometheus = ''

  beforeAll(async () => {
    engine = await DockerEngine.start()
    await engine.compose('build', 'gateway-1', 'retrieval', 'balancer', 'postgres', 'redis', 'prometheus')
    await engine.compose('up', '--detach', '--wait', '--wait-timeout', '600')
    front = await engine.reach(8080)
    prometheus = await engine.reach(9090)
  }, 1_800_000)
  afterAll(() => engine?.end(), 300_000)

  const nameOf = (service: string): string => `spillway-${service}-1`
  const kill = (service: string) => engine.docker('kill', nameOf(service))
  const inspect = async (service: string, what: string): Promise<string> =>
    (await engine.docker('inspect', '--format', what, nameOf(service))).trim()
  const isHealthy = async (service: string) => (await inspect(service, '{{.State.Health.Status}}')) === 'healthy'

  async function back(...services: string[]): Promise<void> {
    for (const service of services) await engine.docker('start', nameOf(service))
    for (const service of services) await eventually(`${service} is healthy`, () => isHealthy(service), SOON_MS)
  }

  interface Told {
    readonly status: number
    readonly text: string
    readonly retrieval: string | null
  }
  async function chat(model = 'spill-large', more: object = {}): Promise<Told> {
    const messages = [{ role: 'user', content: 'What is a weir? A weir holds water.' }]
    const body = JSON.stringify({ model, stream: true, max_tokens: 8, messages, ...more })
    // A connection of its own each time, as new clients have.
    const response = await fetch(`${front}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...headers, connection: 'close' },
      body,
    })
    const text = await response.text()
    return { status: response.status, text, retrieval: response.headers.get('x-spillway-retrieval') }
  }
  /** Answers one after the other; all of them whole. */
  async function expectAnswers(count = 10, more: object = {}): Promise<void> {
    for (let i = 0; i < count; i++) {
      const { status, text } = await chat('spill-large', more)
      expect(status, text).toBe(200)
      expect(text.trimEnd().endsWith('data: [DONE]'), text).toBe(true)
      expect(text).not.toContain('"error"')
    }
  }
  const statusOf = async (path: string): Promise<number> => {
    const response = await fetch(front + path, { headers })
    await response.text()
    return response.status
  }
  const isFor = (what: string, look: () => Promise<boolean>) => eventually(what, look, SOON_MS)

  it('reaches ready in the order of health, as another user, with nothing writable', async () => {
    await expectAnswers()
    const started = async (service: string) => Date.parse(await inspect(service, '{{.State.StartedAt}}'))
    const order = ['postgres', 'retrieval', 'gateway-1', 'balancer']
    const times = await Promise.all(order.map(started))
    expect([...times].sort((a, b) => a - b)).toEqual(times)
    expect(await inspect('gateway-1', '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}')).toBe(
      '65532:65532 true [ALL]',
    )
    expect(await (await fetch(`${front}/health/ready`)).text()).toContain('limits are shared by 2 gateways')
  }, 600_000)

  it('shows every service to Prometheus', async () => {
    const all = await eventually(
      'all are up',
      async () => {
        const asked = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent('sum(up) by (job)')}`)
        const { data } = (await asked.json()) as {
          data: { result: { metric: { job: string }; value: [number, string] }[] }
        }
        const up = Object.fromEntries(data.result.map(({ metric, value }) => [metric.job, value[1]]))
        return up['spillway'] === '2' && up['engines'] === '3' && up['retrieval'] === '1' && up
      },
      SOON_MS,
    )
    expect(Object.keys(all).sort()).toEqual(['engines', 'retrieval', 'spillway'])
  }, 600_000)

  it('has images within their bounds', async () => {
    const gateway = await engine.packedBytes('spillway:local')
    const whole = await engine.packedBytes('spillway:local-whole')
    expect(gateway).toBeLessThan(100_000_000)
    expect(whole).toBeLessThan(300_000_000)
  }, 600_000)

  it.each(['gateway-1', 'gateway-2', 'engine-1', 'engine-2', 'redis', 'prometheus'])(
    'answers every chat when %s is killed, and when it is back',
    async (service) => {
      await kill(service)
      await expectAnswers()
      await back(service)
      await expectAnswers()
      expect(await isHealthy(service)).toBe(true)
    },
    600_000,
  )

  it('says 503 and when to come back for a model whose only engine is killed; other models are answered', async () => {
    await kill('engine-3')
    await isFor('the model has no replica', async () => (await chat('spill-small')).status === 503)
    const { text } = await chat('spill-small')
    expect(text).toContain('"error"')
    await expectAnswers()
    await back('engine-3')
    await isFor('the model is back', async () => (await chat('spill-small')).status === 200)
  }, 600_000)

  const withPassages = { spillway: { retrieval: { corpus: 'handbook' } } }

  it('answers without passages when retrieval is killed', async () => {
    const made = await fetch(`${front}/v1/vector_stores`, { method: 'POST', headers, body: '{"name":"handbook"}' })
    expect(made.status, await made.text()).toBe(200)
    await expectAnswers(2, withPassages)
    await kill('retrieval')
    await expectAnswers(10, withPassages)
    await back('retrieval')
    await isFor('retrieval is used again', async () => (await statusOf('/v1/vector_stores')) === 200)
  }, 600_000)

  it('answers chats when PostgreSQL is killed, and says 503 for what rests there; no gateway restarts', async () => {
    const restarts = () => Promise.all(['gateway-1', 'gateway-2'].map((name) => inspect(name, '{{.RestartCount}}')))
    const before = await restarts()
    await kill('postgres')
    await expectAnswers()
    await isFor('documents are away', async () => (await statusOf('/v1/vector_stores')) === 503)
    await isFor('retrieval says so', async () => !(await isHealthy('retrieval')))
    expect(await statusOf('/health/ready')).toBe(200)
    await expectAnswers(5, withPassages)
    await back('postgres')
    await isFor('documents are back', async () => (await statusOf('/v1/vector_stores')) === 200)
    await isFor('retrieval is ready', () => isHealthy('retrieval'))
    expect(await restarts()).toEqual(before)
  }, 600_000)

  it('is back when the balancer is', async () => {
    await kill('balancer')
    await expect(chat()).rejects.toThrow('fetch failed')
    await back('balancer')
    await expectAnswers()
  }, 600_000)

  it.each(['engines', 'stores'])(
    'answers every chat when a gateway is cut off from the %s',
    async (network) => {
      const name = `spillway_${network}`
      await engine.docker('network', 'disconnect', name, nameOf('gateway-1'))
      try {
        // Without engines the gateway says that it is not ready, and the balancer leaves it out.
        if (network === 'engines') await isFor('gateway-1 says no', async () => !(await isHealthy('gateway-1')))
        await expectAnswers(20)
      } finally {
        await engine.docker('network', 'connect', '--alias', 'gateway-1', name, nameOf('gateway-1'))
      }
      await isFor('gateway-1 is healthy', () => isHealthy('gateway-1'))
      await expectAnswers()
      expect(await inspect('gateway-1', '{{.RestartCount}}')).toBe('0')
    },
    600_000,
  )

  it('ends a gateway gently: not ready, its streams to their end, exit code 0', async () => {
    const streams = Array.from({ length: 8 }, () => chat('spill-large', { max_tokens: 200, ignore_eos: true }))
    await isFor('they run', async () => (await statusOf('/health')) === 200)
    await engine.docker('stop', '--time', '120', nameOf('gateway-1'))
    expect(await inspect('gateway-1', '{{.State.ExitCode}}')).toBe('0')
    for (const { status, text } of await Promise.all(streams)) {
      expect(status, text).toBe(200)
      expect(text.trimEnd().endsWith('data: [DONE]'), text).toBe(true)
      expect(text).not.toContain('"error"')
    }
    await back('gateway-1')
    await expectAnswers()
  }, 600_000)
})
