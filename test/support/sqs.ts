import { ChangeMessageVisibilityCommand, SQSClient } from '@aws-sdk/client-sqs'
import { startFauxqs } from 'fauxqs'

/** A server that speaks SQS and S3, on loopback. The package of AWS asks for credentials, which nobody checks here. */
export const AWS_ENV = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' }

export interface SqsServer {
  readonly base: string
  /** Makes a queue; its address. */
  queue(name: string, attributes?: Record<string, string>): string
  send(name: string, text: string): string
  /** Messages of a queue that nobody has removed; `hidden`: those that somebody holds. */
  messages(name: string): { readonly texts: string[]; readonly hidden: number }
  /** The time is over for which messages of a queue are hidden. */
  show(name: string): Promise<void>
  bucket(name: string): string
  /** Names of a bucket's objects. */
  objects(name: string): Promise<string[]>
  close(): Promise<void>
}

export async function startSqs(): Promise<SqsServer> {
  const server = await startFauxqs({ port: 0, logger: false, host: '127.0.0.1' })
  const base = `http://127.0.0.1:${server.port}`
  const urlOf = (name: string): string => `${base}/000000000000/${name}`
  return {
    base,
    queue(name, attributes) {
      server.createQueue(name, attributes && { attributes })
      return urlOf(name)
    },
    send: (name, text) => server.sendMessage(name, text).messageId,
    messages(name) {
      const { ready, delayed, inflight } = server.inspectQueue(name)?.messages ?? {
        ready: [],
        delayed: [],
        inflight: [],
      }
      const all = [...ready, ...delayed, ...inflight.map(({ message }) => message)]
      return { texts: all.map(({ body }) => body), hidden: inflight.length }
    },
    async show(name) {
      const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
      const client = new SQSClient({ region: 'us-east-1', endpoint: base, credentials })
      for (const { receiptHandle } of server.inspectQueue(name)?.messages.inflight ?? []) {
        const shown = { QueueUrl: urlOf(name), ReceiptHandle: receiptHandle, VisibilityTimeout: 0 }
        await client.send(new ChangeMessageVisibilityCommand(shown))
      }
      client.destroy()
    },
    bucket(name) {
      server.createBucket(name)
      return `${base}/${name}`
    },
    async objects(name) {
      const listed = await (await fetch(`${base}/${name}?list-type=2`)).text()
      return [...listed.matchAll(/<Key>([^<]+)<\/Key>/g)].map(([, key = '']) => key).sort()
    },
    close: () => server.stop(),
  }
}
