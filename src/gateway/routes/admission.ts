import { AdmissionBody, TenantStateBody } from '../../wire/admin.ts'
import { type Checked, makeCheck } from '../../wire/check.ts'
import type { Route } from '../http-server.ts'
import { type AdminAsk, type AdminDeps, adminRoute, answerOf, bodyOf } from './admin.ts'

/**
 * What an operator does first when something goes wrong: pause one tenant, or let admission only observe. Both are
 * entries of the registry: in force when the call returns, at every gateway of the database, and after a restart.
 */
export function admissionRoutes({ admin, keys, bodyBytesMax }: AdminDeps): Route[] {
  const reasoned = <B extends { because: string }>({ exchange }: AdminAsk, check: (body: unknown) => Checked<B>) =>
    bodyOf(exchange, bodyBytesMax, check)
  return [
    adminRoute(keys, 'GET', '/admin/v1/admission', () => ({ object: 'spillway.admission', ...admin.admission() })),
    adminRoute(keys, 'POST', '/admin/v1/admission', async (ask) => {
      const body = await reasoned(ask, checkMode)
      if (body === undefined) return undefined
      const reason = { by: ask.by, because: body.because }
      return answerOf(ask.exchange, await admin.changeMode(body.mode, reason))
    }),
    adminRoute(keys, 'POST', '/admin/v1/tenants/*', async (ask) => {
      const body = await reasoned(ask, checkState)
      if (body === undefined) return undefined
      const reason = { by: ask.by, because: body.because }
      return answerOf(ask.exchange, await admin.pause(ask.rest, body.state === 'paused', reason))
    }),
  ]
}

const checkMode = makeCheck(AdmissionBody)
const checkState = makeCheck(TenantStateBody)
