/**
 * What an error of SageMaker means in the words of an engine that is called directly. A container's own error comes inside
 * of a `ModelError` (424) with its status and its body; some of AWS's errors have a status that says too little.
 */
export interface ContainerAnswer {
  readonly status: number
  readonly body: string
}

const THROTTLED: ReadonlySet<string> = new Set(['ThrottlingException', 'TooManyRequestsException', 'Throttling'])
/** An endpoint, variant or component that is not there is our mistake, not the client's. */
const NOT_THERE = /not found|could not find|does not exist/i

export function containerAnswer(status: number, type: string, text: string): ContainerAnswer {
  const json = parsed(text)
  if (status === 424 || type === 'ModelError') {
    const original = Number(json['OriginalStatusCode'])
    const message = json['OriginalMessage']
    const isKnown = Number.isInteger(original) && original >= 400 && original <= 599
    // A container that was not reached, or ended in the middle, has no status.
    return { status: isKnown ? original : 424, body: typeof message === 'string' ? message : text }
  }
  if (THROTTLED.has(type)) return { status: 429, body: text }
  if (type === 'ValidationError' && NOT_THERE.test(text)) return { status: 404, body: text }
  return { status, body: text }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
