import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { isInside, signedNotice, WebhookSender } from './http-webhooks.ts'

const SECRET = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`
const notice = {
  job: { tenantId: 'acme', id: 'batch_12ab' },
  ending: 'completed',
  createdAtMs: 5_000,
  tries: 1,
} as const

describe('a webhook', () => {
  it('is what OpenAI’s client expects, and nothing else is', async () => {
    const client = new OpenAI({ apiKey: 'none' })
    const { body, headers } = signedNotice(notice, SECRET, Math.floor(Date.now() / 1_000))
    expect(await client.webhooks.unwrap(body, headers, SECRET)).toEqual({
      id: 'evt_12ab',
      object: 'event',
      created_at: 5,
      type: 'batch.completed',
      data: { id: 'batch_12ab' },
    })
    await expect(client.webhooks.unwrap(body.replace('12ab', '12ac'), headers, SECRET)).rejects.toThrow('signature')
    const old = signedNotice(notice, SECRET, 1_000)
    await expect(client.webhooks.unwrap(old.body, old.headers, SECRET)).rejects.toThrow('too old')
  })

  it.each(['completed', 'failed', 'incomplete', 'cancelled'] as const)(
    'of a response in the background says that it is %s',
    async (ending) => {
      const job = { tenantId: 'acme', id: 'resp_12ab' }
      const { body, headers } = signedNotice({ ...notice, job, ending }, SECRET, Math.floor(Date.now() / 1_000))
      expect(headers['webhook-id']).toBe('evt_12ab')
      const event = await new OpenAI({ apiKey: 'none' }).webhooks.unwrap(body, headers, SECRET)
      expect(event).toMatchObject({ id: 'evt_12ab', type: `response.${ending}`, data: { id: 'resp_12ab' } })
    },
  )

  it.each([
    ['127.0.0.1', true],
    ['10.1.2.3', true],
    ['172.31.255.255', true],
    ['172.32.0.1', false],
    ['192.168.0.1', true],
    ['169.254.169.254', true],
    ['100.64.0.1', true],
    ['0.0.0.0', true],
    ['::1', true],
    ['::', true],
    ['::ffff:127.0.0.1', true],
    ['::ffff:8.8.8.8', false],
    ['::ffff:7f00:1', true],
    ['fd00::1', true],
    ['fe80::1', true],
    ['64:ff9b::a00:1', true],
    ['8.8.8.8', false],
    ['2606:4700::1111', false],
    ['not an address', true],
  ])('knows whether %s is inside: %s', (address, inside) => expect(isInside(address)).toBe(inside))

  it.each(['http://127.0.0.1:9/', 'http://[::1]:9/', 'http://localhost:9/', 'http://0x7f.1:9/'])(
    'is not sent to %s, and that is told once',
    async (url) => {
      const told: string[] = []
      const receivers = [{ tenant: 'acme', url, secret: SECRET }]
      const sender = new WebhookSender({
        receivers,
        allowsPrivate: false,
        nowMs: () => 0,
        complain: (why) => told.push(why),
      })
      expect(await sender.send(notice)).toBe('failed')
      expect(await sender.send(notice)).toBe('failed')
      expect(told).toHaveLength(1)
      expect(told[0]).toContain('private')
    },
  )

  it('is for tenants with a receiver', () => {
    const sender = new WebhookSender({ receivers: [], allowsPrivate: true, nowMs: () => 0, complain: () => {} })
    expect(sender.send(notice)).toBeUndefined()
  })
})
