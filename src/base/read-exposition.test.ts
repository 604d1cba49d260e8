import { describe, expect, it } from 'vitest'
import { histogramsIn, readExposition } from './read-exposition.ts'

const TEXT = `# HELP a_total What a is, with \\\\ and \\n.
# TYPE a_total counter
a_total{x="1, \\"y\\" }",z="\\\\n"} 3
a_total 4
not a sample
# HELP g_bytes G.
# TYPE g_bytes gauge
g_bytes +Inf
# HELP h_seconds H.
# TYPE h_seconds histogram
h_seconds_bucket{m="q",le="0.1"} 1
h_seconds_bucket{m="q",le="1"} 3
h_seconds_bucket{m="q",le="+Inf"} 4
h_seconds_sum{m="q"} 9.5
h_seconds_count{m="q"} 4
`

describe('readExposition', () => {
  it('gives names, labels and values back', () => {
    const [a, g] = readExposition(TEXT)
    expect(a).toEqual({
      name: 'a_total',
      kind: 'counter',
      help: 'What a is, with \\ and \n.',
      samples: [
        { name: 'a_total', labels: { x: '1, "y" }', z: '\\n' }, value: 3 },
        { name: 'a_total', labels: {}, value: 4 },
      ],
    })
    expect(g?.samples).toEqual([{ name: 'g_bytes', labels: {}, value: Number.POSITIVE_INFINITY }])
  })

  it('takes the buckets of a histogram apart', () => {
    const histogram = readExposition(TEXT).find(({ kind }) => kind === 'histogram')
    expect(histogramsIn(histogram!)).toEqual([
      { labels: { m: 'q' }, bounds: [0.1, 1], counts: [1, 2, 1], sum: 9.5, count: 4 },
    ])
  })
})
