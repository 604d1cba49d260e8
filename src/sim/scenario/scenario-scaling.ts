import { Type } from '../../base/schema.ts'

/** How long a replica takes that autoscaling orders. */
export const ColdStartSchema = Type.Number({
  exclusiveMinimum: 0,
  description: 'Time from an order to a ready replica of pools with `autoscale`; their `coldStartMs` if absent.',
})
