import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A receiver of webhooks that takes whatever it is told, and remembers it. */
export class WebhookReceiver {
  readonly calls: { readonly headers: Record<string, string>; readonly body: string }[] = []
  readonly #server: Server = createServer((req, res) => {
    let body = ''
    req.on('data', (part: Buffer) => {
      body += part.toString()
    })
    req.on('end', () => {
      this.calls.push({ headers: req.headers as Record<string, string>, body })
      res.writeHead(200).end()
    })
  })

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver()
    await new Promise<void>((resolve) => {
      receiver.#server.listen(0, '127.0.0.1', resolve)
    })
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
