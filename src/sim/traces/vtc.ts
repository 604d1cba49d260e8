import { US_PER_S } from '../../base/clock.ts'
import { hasFields, parseJsonLine } from './json-line.ts'
import { LineFault, shown, type TraceFormat, TraceTimes, tokensOf } from './trace.ts'

/** The trace of the VTC paper (OSDI'24): requests with tenants. */
export const vtc: TraceFormat = {
  name: 'vtc',
  example: '{"t": 0.0, "tenant": "u13", "input": 13, "output": 199}',
  claims: (firstLine) => hasFields(firstLine, ['t', 'tenant', 'input', 'output']),
  *read(lines, { factor }) {
    const times = new TraceTimes(factor)
    for (const line of lines) {
      const { t, tenant, input, output } = parseJsonLine(line)
      if (typeof tenant !== 'string' || tenant === '') {
        throw new LineFault(line.number, `tenant is ${shown(tenant)}, not a name.`)
      }
      yield {
        atUs: times.next(line, 't', t, US_PER_S),
        tenant,
        promptTokens: tokensOf(line, 'input', input),
        outputTokens: tokensOf(line, 'output', output),
      }
    }
  },
}
