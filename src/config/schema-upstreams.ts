import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { section } from './schema-fields.ts'

/** What addresses, environment variables and files the configuration of engines may name. */
export const UpstreamsSchema = section(
  {
    hostsAllowed: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
      default: [],
      maxItems: 100,
      description:
        'Hosts that may be called although they are link-local or the metadata service of a cloud, as `169.254.7.1`.',
    }),
    keyVariables: Type.Array(Type.String({ pattern: '^[A-Za-z0-9_*]+$', maxLength: 128 }), {
      default: [...defaults.KEY_VARIABLES],
      maxItems: 100,
      description:
        'Environment variables that administrators may name as `apiKeyEnv`; `*` stands for any letters. Variables of Spillway\u2019s own settings are never allowed. The configuration file may name any.',
    }),
    folders: Type.Array(Type.String({ pattern: '^/[^*]*$', maxLength: 1_024 }), {
      default: [],
      maxItems: 100,
      description:
        'Folders with files (certificates, tokens) that administrators may name; if empty, none. The configuration file may name any.',
    }),
  },
  'What the configuration of engines may name, so that a server is not made to call or to give away what it should not.',
)
