import { X509Certificate } from 'node:crypto'
import { createSecureContext, createServer, type SecureContext, type SecureContextOptions, type Server } from 'node:tls'

/**
 * TLS in front of HTTP. The server here does not listen: the front door hands it connections, and gets them back when
 * they are secure. Certificates can be changed at any time: connections that are open keep the ones they began with.
 *
 * The certificate is chosen by the name that the client asks for (SNI), from the names inside the certificates; the
 * first one serves clients that ask for no name or an unknown one. Sessions are resumed by tickets (RFC 8446, 2.2),
 * whose keys begin anew with every change of the certificates, so that no ticket outlives the authorities it was given
 * under.
 */
export interface TlsIdentity {
  /** A certificate chain and its key, as PEM. */
  readonly cert: string
  readonly key: string
}

export interface TlsMaterial {
  /** At least one; the first is for clients without a name. */
  readonly identities: readonly TlsIdentity[]
  /** Authorities of client certificates, as PEM. If set, a client must have a certificate of theirs. */
  readonly clientCa?: string | undefined
}

export interface TlsFrontOptions {
  readonly material: TlsMaterial
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly handshakeTimeoutMs: number
  readonly protocols: readonly ('h2' | 'http/1.1')[]
}

interface NamedContext {
  readonly names: X509Certificate
  readonly context: SecureContext
}

export class TlsFront {
  readonly server: Server
  readonly #options: TlsFrontOptions
  #contexts: readonly NamedContext[]

  constructor(options: TlsFrontOptions) {
    const { material, minVersion, handshakeTimeoutMs, protocols } = options
    this.#options = options
    this.#contexts = contextsOf(material, minVersion)
    this.server = createServer({
      ...baseOf(material, minVersion),
      handshakeTimeout: handshakeTimeoutMs,
      ALPNProtocols: [...protocols],
      requestCert: material.clientCa !== undefined,
      rejectUnauthorized: true,
      SNICallback: (name, done) => done(null, this.#contextFor(name)),
    })
    // There is no request to answer. Node itself leaves a connection open whose handshake takes too long.
    this.server.on('tlsClientError', (_, socket) => socket.destroy())
  }

  /** Takes other certificates for new connections, or throws and keeps those that it has. */
  change(material: TlsMaterial): void {
    const { minVersion } = this.#options
    const contexts = contextsOf(material, minVersion)
    this.server.setSecureContext(baseOf(material, minVersion))
    this.#contexts = contexts
  }

  /** Undefined means the first, which is the server's own. */
  #contextFor(name: string): SecureContext | undefined {
    return this.#contexts.find(({ names }) => names.checkHost(name) !== undefined)?.context
  }
}

function baseOf(
  { identities: [first], clientCa }: TlsMaterial,
  minVersion: 'TLSv1.2' | 'TLSv1.3',
): SecureContextOptions {
  return { ...first, minVersion, ...(clientCa !== undefined && { ca: clientCa }) }
}

function contextsOf({ identities, clientCa }: TlsMaterial, minVersion: 'TLSv1.2' | 'TLSv1.3'): NamedContext[] {
  return identities.map((identity) => ({
    names: new X509Certificate(identity.cert),
    context: createSecureContext(baseOf({ identities: [identity], clientCa }, minVersion)),
  }))
}
