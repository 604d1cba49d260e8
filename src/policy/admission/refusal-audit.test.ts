import { describe, expect, it } from 'vitest'
import { type AuditedRefusal, REFUSAL_AUDIT_DEFAULTS, RefusalAudit } from './refusal-audit.ts'

const MS = 1_000
const LANE = 'standard key'
const REFUSAL: AuditedRefusal = {
  ticketId: 'refused',
  laneId: LANE,
  promptTokens: 1_000,
  aloneUs: 50 * MS,
  decodeUs: 1_000 * MS,
  delayUs: 40 * MS,
  firstTokenBy: 500 * MS,
  finishBy: 5_000 * MS,
}
/** A prompt of 50 ms that took as long as expected. */
const USUAL = { aloneUs: 50 * MS, tookUs: 60 * MS, expectedUs: 60 * MS }
const HORIZON_US = REFUSAL_AUDIT_DEFAULTS.horizonUs
const quick = (): number => 60 * MS
const verdictOf = ({ falseRejects, rightRejects, unjudged }: ReturnType<RefusalAudit['view']>): string =>
  falseRejects === 1 ? 'false' : rightRejects === 1 ? 'right' : unjudged === 1 ? 'unjudged' : 'watched'

/** The next ticket of the lane has its first token at `firstTokenMs`; the closest other is in time by `slackMs`. */
function judge(firstTokenMs: number, slackMs: number, refusal = REFUSAL): string {
  const audit = new RefusalAudit()
  audit.refused(0, refusal)
  audit.granted('next', LANE, 10 * MS)
  audit.began(firstTokenMs * MS, {
    ticketId: 'next',
    admittedAt: 10 * MS,
    ...USUAL,
    slackUs: 400 * MS,
  })
  audit.began(1_000 * MS, { ticketId: 'other', admittedAt: 700 * MS, ...USUAL, slackUs: slackMs * MS })
  audit.sawRoom(3_000 * MS, true, quick)
  return verdictOf(audit.view(3_000 * MS))
}

describe('RefusalAudit, where answers that last hold the room', () => {
  it('counts the time until room comes back as put off for those behind', () => {
    expect(judge(420, 65)).toBe('false')
    const audit = new RefusalAudit()
    audit.refused(0, { ...REFUSAL, roomUs: 600 * MS, hasRoom: () => true })
    audit.granted('next', LANE, 10 * MS)
    audit.began(420 * MS, { ticketId: 'next', admittedAt: 10 * MS, ...USUAL, slackUs: 400 * MS })
    // A calm moment does not give the room back.
    audit.sawRoom(500 * MS, true, quick)
    expect(verdictOf(audit.view(500 * MS))).toBe('watched')
    expect(verdictOf(audit.view(HORIZON_US))).toBe('right')
  })

  it('does not take an open replica for room, until there is room for the request', () => {
    let hasRoom = false
    const audit = new RefusalAudit()
    audit.refused(0, { ...REFUSAL, roomUs: 600 * MS, hasRoom: () => hasRoom })
    audit.sawRoom(100 * MS, true, quick)
    hasRoom = true
    audit.sawRoom(600 * MS, true, quick)
    // Its first token would have come after 660 ms, and 500 are promised.
    expect(verdictOf(audit.view(600 * MS))).toBe('right')
  })

  it('asks a few lanes at one look, and all of them in time', () => {
    const asked = new Map<string, number>()
    const audit = new RefusalAudit()
    for (let i = 0; i < 20; i++) {
      const laneId = `lane ${i}`
      const hasRoom = (): boolean => {
        asked.set(laneId, (asked.get(laneId) ?? 0) + 1)
        return false
      }
      audit.refused(0, { ...REFUSAL, ticketId: `t${i}`, laneId, roomUs: 600 * MS, hasRoom })
    }
    audit.sawRoom(1, true, quick)
    expect(asked.size).toBe(8)
    audit.sawRoom(2, true, quick)
    audit.sawRoom(3, true, quick)
    expect(asked.size).toBe(20)
  })
})

describe('RefusalAudit', () => {
  it('reads as in the header', () => {
    expect(judge(420, 65)).toBe('false')
    expect(judge(420, 30)).toBe('right')
  })

  it.each([
    ['its own first token would have been late', judge(510, 65), 'right'],
    [
      'a longer prompt than that of the ticket that had its turn',
      judge(480, 65, { ...REFUSAL, aloneUs: 80 * MS }),
      'right',
    ],
    ['a shorter one', judge(520, 65, { ...REFUSAL, aloneUs: 20 * MS }), 'false'],
    ['its last token would have been late', judge(420, 65, { ...REFUSAL, finishBy: 1_400 * MS }), 'right'],
    ['others were late anyway', judge(420, -1), 'false'],
  ])('judges by what came: %s', (_, verdict, expected) => {
    expect(verdict).toBe(expected)
  })

  it('convicts at once beside a calm pool, however many were refused and whatever was predicted', () => {
    const audit = new RefusalAudit()
    for (let i = 0; i < 2_000; i++) {
      audit.refused(i * MS, { ...REFUSAL, ticketId: `t${i}`, firstTokenBy: (i + 500) * MS, finishBy: (i + 5_000) * MS })
      audit.sawRoom(i * MS, true, quick)
    }
    expect(audit.view(2_000 * MS)).toEqual({ falseRejects: 2_000, rightRejects: 0, unjudged: 0, watched: 0 })
    expect(audit.isWatching).toBe(false)
    expect(audit.takeFalse(2_000 * MS)).toHaveLength(REFUSAL_AUDIT_DEFAULTS.watchedMax)
    expect(audit.takeFalse(2_000 * MS)).toEqual([])
  })

  it('waits for those behind it when there was room but prompts to read', () => {
    const audit = new RefusalAudit()
    audit.refused(0, REFUSAL)
    audit.sawRoom(100 * MS, false, quick)
    expect(verdictOf(audit.view(100 * MS))).toBe('watched')
    audit.began(900 * MS, { ticketId: 'other', admittedAt: 500 * MS, ...USUAL, slackUs: 10 * MS })
    expect(verdictOf(audit.view(HORIZON_US))).toBe('right')
  })

  it('puts others off by more where first tokens take longer than the step times say', () => {
    for (const [expectedMs, verdict] of [
      [60, 'false'],
      [30, 'right'],
    ] as const) {
      const audit = new RefusalAudit()
      audit.refused(0, REFUSAL)
      audit.sawRoom(100 * MS, false, quick)
      const seen = { ...USUAL, expectedUs: expectedMs * MS, slackUs: 60 * MS }
      audit.began(900 * MS, { ticketId: 'other', admittedAt: 500 * MS, ...seen })
      expect(verdictOf(audit.view(HORIZON_US))).toBe(verdict)
    }
  })

  it('does not look at tickets that came much later', () => {
    const audit = new RefusalAudit()
    audit.refused(0, REFUSAL)
    audit.sawRoom(100 * MS, false, quick)
    audit.began(5_500 * MS, { ticketId: 'other', admittedAt: 5_200 * MS, ...USUAL, slackUs: 1 * MS })
    expect(verdictOf(audit.view(HORIZON_US))).toBe('false')
  })

  it('counts room that comes too late for nothing', () => {
    const audit = new RefusalAudit()
    audit.refused(0, REFUSAL)
    audit.sawRoom(450 * MS, true, quick)
    expect(verdictOf(audit.view(450 * MS))).toBe('right')
  })

  it('takes no turn of another lane, and none of a ticket that came before', () => {
    const audit = new RefusalAudit()
    audit.refused(20 * MS, REFUSAL)
    audit.granted('elsewhere', 'standard other', 30 * MS)
    audit.granted('before', LANE, 10 * MS)
    for (const ticketId of ['elsewhere', 'before'])
      audit.began(100 * MS, { ticketId, admittedAt: 10 * MS, ...USUAL, slackUs: 400 * MS })
    expect(verdictOf(audit.view(100 * MS))).toBe('watched')
    expect(verdictOf(audit.view(20 * MS + HORIZON_US))).toBe('right')
  })

  it('says nothing where nothing is known: the ticket in its place never began, or its time is not over', () => {
    const audit = new RefusalAudit()
    audit.refused(0, REFUSAL)
    audit.granted('next', LANE, 10 * MS)
    audit.ended('next')
    expect(verdictOf(audit.view(20 * MS))).toBe('unjudged')
    const patient = new RefusalAudit()
    patient.refused(0, { ...REFUSAL, firstTokenBy: Number.POSITIVE_INFINITY, finishBy: 10 * HORIZON_US })
    expect(verdictOf(patient.view(HORIZON_US))).toBe('unjudged')
  })

  it('watches a bounded number, spread over the horizon', () => {
    const audit = new RefusalAudit({ ...REFUSAL_AUDIT_DEFAULTS, watchedMax: 150 })
    const judgedAt: number[] = []
    audit.onJudged = ({ ticketId }) => judgedAt.push(Number(ticketId))
    for (let ms = 0; ms < 30_000; ms++) {
      audit.refused(ms * MS, { ...REFUSAL, ticketId: String(ms), firstTokenBy: (ms + 500) * MS })
      if (ms === 14_999) expect(audit.view(ms * MS).watched).toBeLessThanOrEqual(150)
    }
    const { watched, unjudged, rightRejects } = audit.view(60_000 * MS)
    expect([watched, unjudged + rightRejects]).toEqual([0, 30_000])
    const bySecond = new Map<number, number>()
    for (const ms of judgedAt) bySecond.set(Math.floor(ms / 1_000), (bySecond.get(Math.floor(ms / 1_000)) ?? 0) + 1)
    expect(bySecond.size).toBeGreaterThanOrEqual(25)
    // Nineteen a second if it were perfectly even; all 150 if the first second took them.
    expect(Math.max(...bySecond.values())).toBeLessThanOrEqual(40)
  })
})
