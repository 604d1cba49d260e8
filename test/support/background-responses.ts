import { hashKey } from '../../src/config/key-hash.ts'
import { answers, type Behaviour } from './fake-upstream.ts'
import { ACME_KEY, GLOBEX_KEY, type Tree, upstreamTree } from './start-platform.ts'

/** Responses in the background: who may ask for them, and engines that keep them waiting. */
export const INITECH_KEY = 'sk-test-initech'

/** acme and globex may store, initech may not. */
export const backgroundTree = (engineUrl: string, more: Tree = {}): Tree =>
  upstreamTree([engineUrl], {
    tenants: [
      { id: 'acme', slo: 'patient', storing: {}, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
      { id: 'globex', slo: 'patient', storing: {}, keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
      { id: 'initech', slo: 'patient', keys: [{ id: 'initech-1', hash: hashKey(INITECH_KEY) }] },
    ],
    ...more,
  })

/** An engine that begins no answer before it is told to; `left`: its reader has gone before. */
export function held(): { behaviour: Behaviour; open: () => void; left: Promise<void> } {
  let leave = (): void => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const behaviour: Behaviour = async (call) => {
    call.res.on('close', leave)
    await Promise.race([opened, left])
    if (!call.isGone()) await answers()(call)
  }
  return { behaviour, open, left }
}
