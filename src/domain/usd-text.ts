/** Nano-dollars as decimal text in dollars, exact and short: 1_260_000n is 0.00126. */
export function usdText(nano: bigint): string {
  return decimalText(nano, 9)
}

/** A whole number of 10⁻ⁿ as decimal text, without zeros at its end. */
export function decimalText(units: bigint, places: number): string {
  const digits = String(units < 0n ? -units : units).padStart(places + 1, '0')
  const parts = digits.slice(-places).replace(/0+$/, '')
  return `${units < 0n ? '-' : ''}${digits.slice(0, -places)}${parts === '' ? '' : `.${parts}`}`
}

/** The way back; undefined for text that is no such decimal, or is finer than its unit. */
export function unitsOf(text: string, places: number): bigint | undefined {
  const [, sign, whole, parts = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (whole === undefined || parts.length > places) return undefined
  const units = BigInt(whole + parts.padEnd(places, '0'))
  return sign === '-' ? -units : units
}
