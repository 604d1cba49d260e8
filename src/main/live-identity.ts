import { readTls } from '../assembly/fs-tls.ts'
import { get, isOk } from '../backends/http-get.ts'
import { HttpUpstream, type TlsOptions } from '../backends/http-upstream.ts'
import type { Clock } from '../base/clock.ts'
import { keysAddressProblem } from '../config/check-oidc.ts'
import type { Config } from '../config/schema.ts'
import { toIssuers } from '../config/to-issuers.ts'
import { OidcTokenVerifier } from '../identity/oidc-token-verifier.ts'
import type { KeySource } from '../identity/read-keys.ts'

/**
 * The check of tokens, where issuers are configured. Their keys are read before the server listens, each within a few
 * seconds; an issuer that cannot be reached stops nothing, because keys and other issuers work without it.
 */
export async function startLiveIdentity(
  config: Pick<Config, 'oidc' | 'upstreams'>,
  clock: Clock,
  complain: (problem: string) => void,
): Promise<OidcTokenVerifier | undefined> {
  const { issuers } = config.oidc
  if (issuers.length === 0) return undefined
  const sources = new Map(issuers.map((one): [string, KeySource] => [one.id, sourceOf(one, config.upstreams)]))
  const verifier = new OidcTokenVerifier({
    issuers: toIssuers(config),
    sourceOf: ({ issuerId }) => sources.get(issuerId) as KeySource,
    clock,
    complain,
  })
  await verifier.start()
  return verifier
}

type IssuerSettings = Config['oidc']['issuers'][number]

function sourceOf(issuer: IssuerSettings, { hostsAllowed }: Config['upstreams']): KeySource {
  const tls = readTls(issuer.tls, `issuer ${issuer.id}`)
  return {
    fetchText: (url) => fetchText(url, tls),
    addressProblem: (url) => keysAddressProblem(url, issuer, hostsAllowed),
  }
}

/** Keys are read every few minutes: a connection that is kept would be closed by then. */
async function fetchText(address: string, tls: TlsOptions | undefined): Promise<string> {
  const url = new URL(address)
  const upstream = new HttpUpstream({ url: url.origin, tls, auth: 'none' })
  try {
    const got = await get(upstream, url.pathname + url.search)
    if (isOk(got)) return got.text
    throw new Error(`${address} answered ${got.status === 0 ? got.text : got.status}`)
  } finally {
    await upstream.close()
  }
}
