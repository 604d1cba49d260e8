import { readFileSync } from 'node:fs'
import type { TlsOptions } from '../backends/http-upstream.ts'
import { ConfigError } from '../config/config-error.ts'
import type { BackendConfig } from '../config/schema.ts'

/** The PEM files that a backend's TLS settings name, read once, when the backend is made. */
type TlsConfig = Exclude<BackendConfig, { kind: 'simulated' }>['tls']

/** `owner`: whose settings they are, as `pool chat`. */
export function readTls(tls: TlsConfig, owner: string): TlsOptions | undefined {
  if (tls === undefined) return undefined
  const { caFile, certFile, keyFile, serverName, insecure } = tls
  const problems: string[] = []
  const read = (file: string | undefined, setting: string): string | undefined => {
    if (file === undefined) return undefined
    try {
      return readFileSync(file, 'utf8')
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
      problems.push(`${owner}: tls.${setting} is "${file}", which cannot be read (${code}). Correct the path.`)
      return undefined
    }
  }
  const [ca, cert, key] = [read(caFile, 'caFile'), read(certFile, 'certFile'), read(keyFile, 'keyFile')]
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { serverName }),
    ...(insecure && { isVerified: false }),
  }
}
