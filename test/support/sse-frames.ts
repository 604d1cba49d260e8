import { expect } from 'vitest'

/** A whole stream as strict readers see it: `data: …` and a blank line per frame, `[DONE]` once and last. */
export interface Frame {
  readonly choices?: ReadonlyArray<{
    readonly index: number
    readonly delta?: { readonly role?: string; readonly content?: string | null }
    readonly text?: string
    readonly finish_reason: string | null
  }>
  readonly usage?: Record<string, unknown> | null
  readonly error?: { readonly message: string; readonly code: string | null }
}

export function framesIn(text: string): Frame[] {
  const frames = text.split('\n\n')
  expect(frames.pop(), 'the stream ends with a blank line').toBe('')
  expect(frames.pop(), 'the last frame').toBe('data: [DONE]')
  return frames.map((frame) => {
    expect(frame).toMatch(/^data: \{[^\r\n]*\}$/)
    return JSON.parse(frame.slice('data: '.length)) as Frame
  })
}

export function textIn(frames: readonly Frame[], index = 0): string {
  return frames
    .flatMap((frame) => frame.choices ?? [])
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta?.content ?? choice.text ?? '')
    .join('')
}

/** The body of a chunked response, without its framing. */
export function dechunked(received: string): string {
  const start = received.indexOf('\r\n\r\n')
  let bytes = Buffer.from(received.slice(start + 4))
  const parts: Buffer[] = []
  for (;;) {
    const end = bytes.indexOf('\r\n')
    const size = end < 0 ? 0 : Number.parseInt(bytes.subarray(0, end).toString(), 16)
    if (!(size > 0) || bytes.length < end + 2 + size) return Buffer.concat(parts).toString()
    parts.push(bytes.subarray(end + 2, end + 2 + size))
    bytes = bytes.subarray(end + 2 + size + 2)
  }
}
