/**
 * Claim: the catalogue's coefficients for vLLM's kernels are within 8 % of the measured kernels on average.
 *
 * Reads a CSV of gpu, dtype, model, tp, quantity, tokens_or_batch, context, ms (operators measured by
 * ai-dynamo/aiconfigurator; not part of this repository), holds each operator against its term of the formula, and whole
 * decode steps, put together from the operators, against the whole formula.
 *
 *   node bench/micro/kernel-accuracy.ts vllm-kernel-steps.csv
 */
import { readFileSync } from 'node:fs'
import type { RooflineCoefficients } from '../../src/engine/gpu-profile.ts'
import { KERNEL_FITS } from '../../src/engine/kernel-fits.ts'

const path = process.argv[2]
if (path === undefined) throw new Error('usage: node bench/micro/kernel-accuracy.ts FILE.csv')

interface Row {
  readonly set: string
  readonly quantity: string
  readonly tokens: number
  readonly context: number
  readonly us: number
}

const rows: readonly Row[] = readFileSync(path, 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [gpu, dtype, model, tp, quantity, tokens, context, ms] = line.split(',') as string[]
    const set = `${gpu?.replace('_sxm', '')} llama-${model?.toLowerCase()} tp${tp} ${dtype === 'fp8' ? 'fp8' : 'bf16'}`
    return { set, quantity: quantity as string, tokens: Number(tokens), context: Number(context), us: 1e3 * Number(ms) }
  })

const fits = new Map(
  KERNEL_FITS.map((fit) => [`${fit.gpu} ${fit.model} tp${fit.gpuCount} ${fit.dtype}`, fit.coefficients]),
)

function predictedUs(c: RooflineCoefficients, { quantity, tokens, context }: Row): number {
  const p = c.kneeSharpness
  switch (quantity) {
    case 'linear_all_layers_ms':
      return (c.weightsUs ** p + (c.computeUsPerToken * tokens) ** p) ** (1 / p)
    case 'decode_attn_ms':
      return c.decodeBaseUs + c.decodeUsPerSequence * tokens + c.kvReadUsPerToken * tokens * context
    case 'prefill_attn_ms':
      return c.prefillBaseUs + (c.attentionUsPerPair * tokens * tokens) / 2
    case 'allreduce_ms':
      return c.allReduceBaseUs + c.allReduceUsPerToken * tokens
    default:
      throw new Error(`unknown quantity ${quantity}`)
  }
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length
const errorOf = (predicted: number, measured: number): number => Math.abs(predicted / measured - 1)

/** Linear layers, attention and all-reduce of one decode step, where all three were measured. */
function wholeStepErrors(set: string, c: RooflineCoefficients): number[] {
  const own = rows.filter((row) => row.set === set)
  const find = (quantity: string, tokens: number): Row | undefined =>
    own.find((row) => row.quantity === quantity && row.tokens === tokens)
  return own
    .filter((row) => row.quantity === 'decode_attn_ms')
    .flatMap((attention) => {
      const linear = find('linear_all_layers_ms', attention.tokens)
      const reduce = find('allreduce_ms', attention.tokens)
      if (linear === undefined || reduce === undefined) return []
      const parts = reduce.us > 0 ? [attention, linear, reduce] : [attention, linear]
      const measured = parts.reduce((sum, part) => sum + part.us, 0)
      const predicted = parts.reduce((sum, part) => sum + predictedUs(c, part), 0)
      return [errorOf(predicted, measured)]
    })
}

const operatorErrors: number[] = []
const stepErrors: number[] = []
console.log('set                           operators, mean   decode steps, mean')
for (const [set, c] of fits) {
  const own = rows.filter((row) => row.set === set && row.us > 0).map((row) => errorOf(predictedUs(c, row), row.us))
  if (own.length === 0) continue
  const steps = wholeStepErrors(set, c)
  operatorErrors.push(...own)
  stepErrors.push(...steps)
  const cells = [mean(own), mean(steps)].map((error) => `${(100 * error).toFixed(1)} %`.padStart(18))
  console.log(`${set.padEnd(26)} ${cells.join(' ')}`)
}
const result = { operatorsMeanError: mean(operatorErrors), decodeStepsMeanError: mean(stepErrors) }
console.log(`all ${operatorErrors.length} operators: ${(100 * result.operatorsMeanError).toFixed(2)} %`)
console.log(JSON.stringify({ bench: 'kernel-accuracy', ...result, claim: { meanError: 0.08 } }))
