import type { Cell } from '../kit/result.ts'

/**
 * What the VTC paper's own runs give: computed with `metrics.ts` from the responses in its artifact
 * (Ying1123/VTC-artifact, fair_bench). Difference maximum, mean, variance; accumulated gap; tokens per second.
 */
export const PUBLISHED: Readonly<Record<string, ReadonlyArray<readonly Cell[]>>> = {
  real: [
    ['published: FCFS', 760, 434, 32_112, null, 777],
    ['published: VTC', 368, 252, 6_549, null, 779],
    ['published: VTC, oracle', 329, 228, 4_476, null, 781],
  ],
  overload: [
    ['published: FCFS (600 s)', 447, 439, 31, 250_375, 876],
    ['published: VTC', 192, 118, 4_104, 9_093, 893],
    ['published: VTC ± 50 %', 35, 13, 81, 2_429, 904],
    ['published: VTC, oracle', 7, 1, 3, 430, 895],
  ],
  'overload-multi': [
    ['published: FCFS', 248, 243, 22, 21_311, 875],
    ['published: VTC', 323, 191, 4_494, 3_449, 875],
    ['published: VTC ± 50 %', 98, 61, 558, 1_892, 875],
    ['published: VTC, oracle', 45, 41, 10, 768, 875],
  ],
  'on-off': [
    ['published: FCFS', 1_317, 433, 127_849, 370_818, 876],
    ['published: VTC', 223, 110, 4_990, 7_900, 879],
  ],
  proportional: [
    ['published: FCFS', 157, 145, 70, 410_055, 856],
    ['published: VTC', 26, 10, 41, 326_834, 883],
  ],
  'short-long': [
    ['published: FCFS', 355, 209, 8_469, 207_619, 1_476],
    ['published: VTC', 133, 34, 839, 5_616, 1_445],
  ],
}
