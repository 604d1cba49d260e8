import type { TProperties } from 'typebox'
import { Type } from '../base/schema.ts'
import { WEIGHT_MAX, WEIGHT_MIN } from '../domain/tenant.ts'

/**
 * The small vocabulary that the schema is written in. Every object refuses unknown keys (a misspelt setting that is
 * silently ignored is the worst kind), and has a default if all of its settings have one.
 */

/** A setting's own environment name, where it is not the one made from its path. */
export interface SettingOptions {
  readonly description: string
  readonly env?: string
  readonly minimum?: number
}

export function section<const T extends TProperties>(properties: T, description: string) {
  return Type.Object(properties, { additionalProperties: false, description, default: {} })
}

export function item<const T extends TProperties>(properties: T, description: string) {
  return Type.Object(properties, { additionalProperties: false, description })
}

export const name = (description: string) =>
  Type.String({ description, pattern: NAME_PATTERN, minLength: 1, maxLength: 128 })

/** Names go into headers, metric labels and log lines: what is legal in all of them. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._:/-]*$'

export const count = (byDefault: number, options: SettingOptions) =>
  Type.Integer({ default: byDefault, minimum: 1, maximum: 1_000_000_000, ...options })

/** Up to a day. Where zero would not mean "at once" (Node takes a timeout of zero for none), the minimum is one. */
export const durationMs = (byDefault: number, options: SettingOptions) =>
  Type.Integer({ default: byDefault, minimum: 0, maximum: 86_400_000, ...options })

export const port = (options: SettingOptions & { default?: number }) =>
  Type.Integer({ minimum: 0, maximum: 65_535, ...options })

export const weight = (description: string) =>
  Type.Number({ default: 1, minimum: WEIGHT_MIN, maximum: WEIGHT_MAX, description })

export const httpUrl = (description: string) => Type.String({ pattern: '^https?://[^\\s/]+(/.*)?$', description })
