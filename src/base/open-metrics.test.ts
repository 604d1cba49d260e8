import { describe, expect, it } from 'vitest'
import { toOpenMetrics, wantsOpenMetrics } from './open-metrics.ts'

describe('toOpenMetrics', () => {
  it('takes `_total` from the heads of counters, escapes quotes in help, and says where the end is', () => {
    const plain = [
      '# HELP a_total Says "yes" or C:\\\\no.',
      '# TYPE a_total counter',
      'a_total{x="# TYPE b_total counter"} 1',
      '# HELP b Now.',
      '# TYPE b gauge',
      'b 2',
      // vLLM has a histogram of such a name.
      '# HELP c_total Sizes.',
      '# TYPE c_total histogram',
      'c_total_count 0',
      '',
    ]
    expect(toOpenMetrics(plain.join('\n')).split('\n')).toEqual([
      '# HELP a Says \\"yes\\" or C:\\\\no.',
      '# TYPE a counter',
      'a_total{x="# TYPE b_total counter"} 1',
      ...plain.slice(3, -1),
      '# EOF',
      '',
    ])
  })
})

describe('wantsOpenMetrics', () => {
  const open = 'application/openmetrics-text'
  it.each([
    // What Prometheus 2.42 sends.
    [`${open};version=1.0.0,${open};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`, true],
    [open, true],
    [`${open}; version=1.0.0; charset=utf-8`, true],
    [`text/plain;version=0.0.4;q=0.6,${open};version=1.0.0;q=0.5`, false],
    [`${open};version=2.0.0`, false],
    [`${open};q=0`, false],
    [`${open};q=none`, false],
    ['text/plain', false],
    ['*/*', false],
    [undefined, false],
  ])('%s: %s', (accept, wanted) => {
    expect(wantsOpenMetrics(accept)).toBe(wanted)
  })
})
