import { CertificateWatch, readCertificates } from '../assembly/fs-certificates.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { openFrontDoor } from '../gateway/http-front-door.ts'
import type { HttpServer } from '../gateway/http-server.ts'
import { isInRange, parseAddress, parseRange } from '../policy/authority/client-range.ts'

/** The front door as the settings have it, with certificates that are followed until the server closes. */
export function openLiveFrontDoor(
  server: HttpServer,
  parts: {
    readonly config: Config
    readonly clock: Clock
    readonly makeRequestId: () => string
    readonly complain: (problem: string) => void
  },
): void {
  const { config, clock, complain } = parts
  const { tls, proxyProtocolFrom, ...settings } = config.server
  const files = readCertificates(tls)
  const door = openFrontDoor(server, {
    ...settings,
    ...parts,
    tls: files === undefined ? undefined : { material: files, minVersion: tls.minVersion },
    isProxy: proxyProtocolFrom.length === 0 ? undefined : proxyTest(proxyProtocolFrom),
  })
  if (files === undefined || door === undefined) return
  const watch = new CertificateWatch(
    {
      clock,
      read: () => readCertificates(tls),
      onChange: (changed) => door.changeCertificates(changed),
      complain: (said) => complain(`spillway: ${said}`),
    },
    files,
  )
  server.once('close', () => watch.stop())
}

/** The settings have been checked: text that is no range names no proxy. */
function proxyTest(texts: readonly string[]): (address: string) => boolean {
  const ranges = texts.map(parseRange).filter((range) => typeof range !== 'string')
  return (text) => {
    const address = parseAddress(text)
    return address !== undefined && ranges.some((range) => isInRange(range, address))
  }
}
