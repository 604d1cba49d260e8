import { Type } from '../base/schema.ts'
import { section } from './schema-fields.ts'

export const ConsoleSchema = section(
  {
    enabled: Type.Boolean({
      default: true,
      description: 'Whether `/console` is served. It asks for a key, and shows what the key may see.',
    }),
  },
  'The console: pages for people.',
)
