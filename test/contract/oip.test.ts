import { HttpOipBackend } from '../../src/backends/http-oip.ts'
import { startTriton, TRITON_MODEL, type TritonScript } from '../support/fake-triton.ts'
import { type BackendUnderTest, describeBackend } from './backend.contract.ts'

async function over(script: TritonScript): Promise<BackendUnderTest & { readonly stop: () => Promise<void> }> {
  const server = await startTriton(script)
  const backend = new HttpOipBackend({ url: server.url, upstreamModel: TRITON_MODEL })
  const close = async (): Promise<void> => {
    await backend.close()
    await server.close()
  }
  return { backend, openCount: () => server.openCount, close, stop: () => server.close() }
}

const endless = { words: Array.from({ length: 10_000 }, (_, i) => `w${i} `), everyMs: 2 }

describeBackend({
  name: 'http-oip, Triton',
  well: () => over({}),
  endless: () => over(endless),
  full: () => over({ refuses: { status: 503, body: { error: 'Exceeds maximum queue size' } } }),
  unable: () => over({ refuses: { status: 400, body: { error: 'unexpected inference input' } } }),
  lost: async () => {
    const under = await over({})
    await under.stop()
    return { ...under, close: () => Promise.resolve() }
  },
  lostInTheMiddle: () => over({ breaksAfter: 3 }),
})
