/** The vector scaled to length 1, so that an inner product is a cosine. A vector of zeros stays zero. */
export function toUnit(vector: Float32Array): Float32Array {
  let sum = 0
  for (let i = 0; i < vector.length; i++) sum += (vector[i] as number) ** 2
  if (sum === 0) return vector
  const scale = 1 / Math.sqrt(sum)
  return vector.map((part) => part * scale)
}
