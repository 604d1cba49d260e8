import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathOf } from './installed.ts'

/** Certificates of an authority of the test's own, in a folder that goes with it. Needs `openssl`. */
export interface PemFiles {
  readonly certFile: string
  readonly keyFile: string
}

export class TestAuthority {
  readonly folder = mkdtempSync(join(tmpdir(), 'spillway-tls-'))
  readonly caFile: string
  readonly #ca: PemFiles

  constructor() {
    this.#ca = this.#files('ca')
    this.caFile = this.#ca.certFile
    this.#make(this.#ca, 'ca', ['-addext', 'basicConstraints=critical,CA:TRUE'])
  }

  get ca(): string {
    return readFileSync(this.caFile, 'utf8')
  }

  /** A certificate for these names; a second one under the same file name replaces the first. */
  issue(name: string, ...names: readonly string[]): PemFiles {
    const files = this.#files(name)
    const alternatives = names.map((one) => (/^[\d.]+$/.test(one) ? `IP:${one}` : `DNS:${one}`)).join(',')
    const issuer = ['-CA', this.#ca.certFile, '-CAkey', this.#ca.keyFile, '-addext', 'basicConstraints=CA:FALSE']
    this.#make(files, name, names.length === 0 ? issuer : [...issuer, '-addext', `subjectAltName=${alternatives}`])
    return files
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #files(name: string): PemFiles {
    return { certFile: join(this.folder, `${name}.pem`), keyFile: join(this.folder, `${name}.key`) }
  }

  #make({ certFile, keyFile }: PemFiles, name: string, more: readonly string[]): void {
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    const args = ['req', '-x509', ...curve, '-days', '2', '-subj', `/CN=${name}`, '-keyout', keyFile, '-out', certFile]
    execFileSync(pathOf('openssl'), [...args, ...more], { stdio: 'pipe' })
  }
}
