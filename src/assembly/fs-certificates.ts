import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type CancelTimer, type Clock, secondsToUs } from '../base/clock.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Config } from '../config/schema.ts'

/**
 * The PEM files of the front door. They are read at the start, where a mistake stops it, and looked at again every two
 * seconds: certificates are renewed while the server runs. A change counts when two looks in a row have found it, so
 * that a certificate is not taken with the old key. A mistake then changes nothing and is told once.
 */
type TlsConfig = Config['server']['tls']

export interface CertificateFiles {
  readonly identities: ReadonlyArray<{ readonly cert: string; readonly key: string }>
  readonly clientCa?: string | undefined
}

/** Undefined where there is no TLS. Throws a `ConfigError` that names every file that is wrong. */
export function readCertificates({ certificates, clientCaFile }: TlsConfig): CertificateFiles | undefined {
  if (certificates.length === 0) return undefined
  const problems: string[] = []
  const read = (file: string, setting: string): string => {
    try {
      return readFileSync(file, 'utf8')
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
      problems.push(`server.tls.${setting} is "${file}", which cannot be read (${code}). Correct the path.`)
      return ''
    }
  }
  const identities = certificates.map(({ certFile, keyFile }, i) => {
    const cert = read(certFile, `certificates[${i}].certFile`)
    const key = read(keyFile, `certificates[${i}].keyFile`)
    const problem = cert === '' || key === '' ? undefined : identityProblem(cert, key)
    if (problem !== undefined) problems.push(`server.tls.certificates[${i}]: ${problem}`)
    return { cert, key }
  })
  const clientCa = clientCaFile === undefined ? undefined : read(clientCaFile, 'clientCaFile')
  if (clientCa !== undefined && clientCa !== '' && tryTo(() => new X509Certificate(clientCa)) === undefined) {
    problems.push(`server.tls.clientCaFile "${clientCaFile}" has no certificate in PEM. Correct the file.`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return { identities, clientCa }
}

function identityProblem(cert: string, key: string): string | undefined {
  const certificate = tryTo(() => new X509Certificate(cert))
  if (certificate === undefined) return 'the certFile has no certificate in PEM. Correct the file.'
  const privateKey = tryTo(() => createPrivateKey(key))
  if (privateKey === undefined) return 'the keyFile has no private key in PEM without a passphrase. Correct the file.'
  if (!certificate.checkPrivateKey(privateKey))
    return 'the key is not that of the certificate. Correct one of the files.'
  return undefined
}

function tryTo<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

export interface CertificateWatchParts {
  readonly read: () => CertificateFiles | undefined
  readonly clock: Clock
  readonly onChange: (files: CertificateFiles) => void
  readonly complain: (problem: string) => void
}

const LOOK_US = secondsToUs(2)

export class CertificateWatch {
  readonly #parts: CertificateWatchParts
  /** What is in use, and what the last look found: the files' text, or what is wrong with them. */
  #taken: string
  #seen: string
  #cancel: CancelTimer

  constructor(parts: CertificateWatchParts, inUse: CertificateFiles) {
    this.#parts = parts
    this.#taken = JSON.stringify(inUse)
    this.#seen = this.#taken
    this.#cancel = this.#later()
  }

  stop(): void {
    this.#cancel()
  }

  #look(): void {
    this.#cancel = this.#later()
    const { read, onChange, complain } = this.#parts
    let files: CertificateFiles | undefined
    let problem: string | undefined
    try {
      files = read()
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error)
    }
    const found = problem ?? JSON.stringify(files)
    const isSettled = found === this.#seen
    this.#seen = found
    if (!isSettled || found === this.#taken) return
    this.#taken = found
    try {
      if (files !== undefined) onChange(files)
    } catch (error) {
      problem = String(error)
    }
    complain(
      problem === undefined
        ? 'took other certificates; open connections keep theirs'
        : `the certificates are as they were, because the new ones cannot be used: ${problem}`,
    )
  }

  #later(): CancelTimer {
    const { clock } = this.#parts
    return clock.at(clock.now() + LOOK_US, () => this.#look())
  }
}
