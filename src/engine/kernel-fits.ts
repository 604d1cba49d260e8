import type { RooflineCoefficients } from './gpu-profile.ts'

/**
 * Step-time coefficients of Llama 3.1 8B and 70B with vLLM's kernels on SXM GPUs, in microseconds, under the letters of
 * `step-time.ts`. Fitted to the measured operators of ai-dynamo/aiconfigurator (Apache-2.0); the linear layers are
 * within 2–7 % on average. The fp8 rows keep keys and values in bf16, so their attention terms are those of bf16.
 *
 * Operators only: nothing here for the host, most of which vLLM overlaps with the GPU. `ASSUMED_SERVING` has the rest.
 */
const TABLE = `
gpu   model      tp  dtype       W       c       p      lm      d0          k         s      p0           a     AR0     AR1
a100  llama-8b   1   bf16   9497.4  52.142  1.7109  656.33  611.18   0.085171     1.438  1009.3   0.0031951       0       0
a100  llama-8b   2   bf16   5141.6  27.424  1.4889  328.57  628.71    0.04438   0.28123  841.06   0.0017008   304.4  3.2164
a100  llama-70b  2   bf16    45528  242.66  1.7663  710.01  1501.7    0.11475    2.3609  2395.1   0.0080844  779.25  15.962
a100  llama-70b  4   bf16    24310  125.36  1.6044  366.56  1539.7   0.059759  0.010662  1936.3    0.004109  1017.7  24.308
a100  llama-70b  8   bf16    13517  67.024  1.4316  194.67  1267.4   0.028838         0  1708.3   0.0021677  1241.4  27.693
h100  llama-8b   1   bf16   5468.1  17.376  2.5866  445.56  352.22   0.043807    3.5579  633.22  0.00087172       0       0
h100  llama-8b   2   bf16   2898.9  8.6447  2.4785  223.01  355.51   0.021296    1.7233   656.1  0.00043823  257.75    2.29
h100  llama-70b  2   bf16    25264  86.652  5.1417   367.5   907.3   0.053186    3.0907  1542.3   0.0021716  670.73  11.047
h100  llama-70b  4   bf16    12772  42.074  3.0579  188.28  941.54   0.026598   0.81717  1524.8   0.0010242  839.26  14.555
h100  llama-70b  8   bf16   7053.9  21.744  2.1232    97.9   973.9   0.013208   0.21134  1599.1   0.0004981    1035  13.768
h100  llama-8b   1   fp8    3347.1  12.165  1.6284  215.66  352.22   0.043807    3.5579  633.22  0.00087172       0       0
h100  llama-8b   2   fp8    2057.3  6.5373  1.4173  107.18  355.51   0.021296    1.7233   656.1  0.00043823  257.75    2.29
h100  llama-70b  2   fp8     14192  54.748  1.9087  184.44   907.3   0.053186    3.0907  1542.3   0.0021716  670.73  11.047
h100  llama-70b  4   fp8    8000.4  28.569  1.5273  96.329  941.54   0.026598   0.81717  1524.8   0.0010242  839.26  14.555
h100  llama-70b  8   fp8    5071.9  16.307  1.2482  52.575   973.9   0.013208   0.21134  1599.1   0.0004981    1035  13.768
h200  llama-8b   1   bf16   4071.6  18.121  2.5243  327.62  385.37   0.031218    3.8519  618.03   0.0008875       0       0
h200  llama-8b   2   bf16   2254.7   8.733  2.2213  163.09   385.4   0.015145    2.0638  648.99  0.00043548  272.55  2.1842
h200  llama-70b  2   bf16    18589  87.185  3.7417  314.01   943.8   0.038942    4.2137  1532.6   0.0022398  698.15  10.597
h200  llama-70b  4   bf16     9637   42.75  2.9058  132.65  972.32   0.019621    1.6951  1511.5   0.0010334  840.84  13.934
h200  llama-70b  8   bf16   5339.1  21.587  2.0325  65.472   990.2  0.0099555   0.64217  1589.8  0.00050184  1026.3  12.898
h200  llama-8b   1   fp8    2683.3  10.396  1.2659  155.57  385.37   0.031218    3.8519  618.03   0.0008875       0       0
h200  llama-8b   2   fp8    1715.6  5.6516  1.1253  77.977   385.4   0.015145    2.0638  648.99  0.00043548  272.55  2.1842
h200  llama-70b  2   fp8     11048  49.882  1.6963  148.33   943.8   0.038942    4.2137  1532.6   0.0022398  698.15  10.597
h200  llama-70b  4   fp8    6611.8  26.611  1.4011  78.762  972.32   0.019621    1.6951  1511.5   0.0010334  840.84  13.934
h200  llama-70b  8   fp8    4357.6    15.7  1.1492  43.654   990.2  0.0099555   0.64217  1589.8  0.00050184  1026.3  12.898
`

export interface KernelFit {
  readonly gpu: string
  readonly model: string
  readonly gpuCount: number
  readonly dtype: 'bf16' | 'fp8'
  readonly coefficients: RooflineCoefficients
}

export const KERNEL_FITS: readonly KernelFit[] = TABLE.trim().split('\n').slice(1).map(parseRow)

function parseRow(row: string): KernelFit {
  const cells = row.split(/ +/)
  const us = (column: number): number => Number(cells[column])
  return {
    gpu: cells[0] as string,
    model: cells[1] as string,
    gpuCount: us(2),
    dtype: cells[3] === 'fp8' ? 'fp8' : 'bf16',
    coefficients: {
      kind: 'roofline',
      weightsUs: us(4),
      computeUsPerToken: us(5),
      kneeSharpness: us(6),
      lmHeadUs: us(7),
      decodeBaseUs: us(8),
      kvReadUsPerToken: us(9),
      contextUsPerToken: 0,
      decodeUsPerSequence: us(10),
      prefillBaseUs: us(11),
      attentionUsPerPair: us(12),
      contextAttentionUsPerPair: us(12),
      allReduceBaseUs: us(13),
      allReduceUsPerToken: us(14),
      hostUs: 0,
      prefillFloorUs: 0,
      prefillFloorSharpness: 4,
      decodeFloorUs: 0,
    },
  }
}
