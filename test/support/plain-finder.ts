import type { EntitySpan, RewritingScreen, TextFinder } from '../../src/domain/screening.ts'

/** A finder of a few plain forms, for tests of what is done with findings. */
const FORMS: ReadonlyArray<readonly [RewritingScreen, string, RegExp]> = [
  ['pii', 'email', /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{1,63}/g],
  ['pii', 'card', /(?<!\d)\d{16}(?!\d)/g],
  ['secrets', 'api-key', /\bsk_live_\w{8,}/g],
  ['secrets', 'generic', /(?<="api_key"\s*:\s*")[^"]+(?=")/g],
]

export class PlainFinder implements TextFinder {
  /** Lengths of the texts that were asked for. */
  readonly asked: number[] = []

  find(text: string): readonly EntitySpan[] {
    this.asked.push(text.length)
    const spans = FORMS.flatMap(([screen, category, form]) =>
      Array.from(text.matchAll(form), ({ index, 0: { length } }) => ({
        screen,
        category,
        start: index,
        end: index + length,
      })),
    ).sort((a, b) => a.start - b.start)
    return spans.filter(({ start }, i) => i === 0 || start >= (spans[i - 1]?.end ?? 0))
  }
}
