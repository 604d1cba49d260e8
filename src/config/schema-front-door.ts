import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { item, section } from './schema-fields.ts'

/** Settings of what comes before a request: pages of other origins, TLS, HTTP/2, proxies. */
const CorsSchema = section(
  {
    origins: Type.Array(Type.String({ pattern: '^(\\*|[a-z][a-z0-9+.-]*://[^/\\s]+)$' }), {
      default: [],
      maxItems: 100,
      description:
        'Origins of web pages that may call the gateway, as `https://app.example`; `*` allows every page. The administration and the metrics are never open to pages.',
    }),
    headers: Type.Array(Type.String({ pattern: '^(\\*|[A-Za-z0-9-]+)$' }), {
      default: ['*'],
      minItems: 1,
      maxItems: 100,
      description:
        'Request headers that web pages may send; `*` allows any. SDKs send a dozen `x-stainless-…` headers.',
    }),
  },
  'Requests of web pages of other origins (CORS); off while no origin is named.',
)

const TlsSchema = section(
  {
    certificates: Type.Array(
      item(
        {
          certFile: Type.String({ minLength: 1, description: 'PEM file with the certificate and its chain.' }),
          keyFile: Type.String({ minLength: 1, description: 'PEM file with the private key of the certificate.' }),
        },
        'A certificate, for the names inside it.',
      ),
      {
        default: [],
        maxItems: 1_000,
        description:
          'Certificates; a client gets the one for the name that it asks for, else the first. The files are followed: a change counts for new connections within seconds. Without a certificate there is no TLS.',
      },
    ),
    clientCaFile: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'PEM file with the authorities of client certificates. If set, a client without a certificate of theirs cannot connect (mTLS); it needs a key all the same.',
      }),
    ),
    minVersion: Type.Enum(['TLSv1.2', 'TLSv1.3'], {
      default: 'TLSv1.2',
      description: 'Oldest version of TLS that is spoken.',
    }),
  },
  'TLS at the front door; off while no certificate is named.',
)

export const FRONT_DOOR_SETTINGS = {
  http2: Type.Boolean({
    default: true,
    description:
      'Whether HTTP/2 is offered beside HTTP/1: to clients that begin with it, and inside TLS to those that ask for it.',
  }),
  fastPath: Type.Boolean({
    default: false,
    description:
      'Whether plain requests over HTTP/1 without TLS are read by a small reader of our own; all others are read by `node:http`. Answers are the same; whether it saves CPU time is not settled, so it is off.',
  }),
  streamsMax: Type.Integer({
    default: defaults.STREAMS_MAX,
    minimum: 1,
    maximum: 100_000,
    description: 'Requests that one HTTP/2 connection may have open at once; further ones are refused.',
  }),
  aheadBytesMax: Type.Integer({
    default: defaults.AHEAD_BYTES_MAX,
    minimum: 1_024,
    maximum: 65_536,
    description:
      'Bytes of a stream that wait in the gateway for a slow reader; then its engine waits. The kernel holds more: see the page on the front door.',
  }),
  proxyProtocolFrom: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
    default: [],
    maxItems: 256,
    description:
      'Addresses of proxies whose connections begin with a PROXY header (version 1 or 2), as `10.0.0.0/8`: the client\u2019s address is what the header says. Connections from these addresses without a header are refused, and from others are never read for one.',
  }),
  tls: TlsSchema,
  cors: CorsSchema,
}
