import { expect, it } from 'vitest'
import { makeKey, makeTenant } from '../../test/support/demand.ts'
import type { Band } from '../domain/tenant.ts'
import type { Caller, KeyDirectory } from './authenticate.ts'
import { callerOfJob } from './job-caller.ts'

function bandsOf(may: { readonly tenant: readonly Band[]; readonly key?: readonly Band[] }, wanted: Band) {
  const tenant = { ...makeTenant('t'), bands: may.tenant }
  const caller: Caller = { tenant, key: makeKey('t-key', 't'), ...(may.key && { bands: may.key }) }
  const keys: KeyDirectory = { byHash: () => caller, byIdentity: () => undefined }
  const found = callerOfJob(keys, { digest: 'd', address: undefined }, wanted)
  return 'code' in found ? found.code : found.bands
}

it.each([
  [{ tenant: ['standard', 'offline'] }, 'offline', 'offline'],
  [{ tenant: ['standard', 'offline'] }, 'standard', 'standard'],
  [{ tenant: ['offline'] }, 'standard', 'offline'],
  [{ tenant: ['standard', 'offline'], key: ['offline'] }, 'standard', 'offline'],
] as const)('with %j a line that should run in %s runs in %s', (may, wanted, band) => {
  expect(bandsOf(may, wanted)).toEqual([band])
})
