import type { Clock } from '../../src/base/clock.ts'
import type { ScreenFinding, Screening, ScreeningTerms, ScreenRule } from '../../src/domain/screening.ts'
import type { ScreenAsk, Screener, ScreenVerdict } from '../../src/lifecycle/screening-ports.ts'

/** How the next checks turn out: after this long, with this verdict; 0 answers at once. */
export interface ScreenMood {
  checkUs: number
  verdict: ScreenVerdict
  isBroken: boolean
}

export const PASSED: ScreenVerdict = { kind: 'passed', findings: [], skipped: [], because: 'nothing was found' }

export const foundBy = (action: ScreenFinding['action'], score = 0.97): ScreenFinding => ({
  screen: 'injection',
  direction: 'input',
  category: 'injection',
  action,
  count: 1,
  score,
})

export const BLOCKED: ScreenVerdict = {
  kind: 'blocked',
  findings: [foundBy('block')],
  skipped: [],
  because: 'injection: injection',
}

/** A judge that a test scripts. */
export class ScriptedScreener implements Screener {
  readonly mood: ScreenMood = { checkUs: 0, verdict: PASSED, isBroken: false }
  readonly asked: ScreenAsk[] = []
  readonly noted: Array<Pick<ScreenAsk, 'tenantId' | 'keyId' | 'screening'>> = []
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  judge(ask: ScreenAsk): Promise<ScreenVerdict> | ScreenVerdict {
    this.asked.push(ask)
    const { checkUs, verdict, isBroken } = this.mood
    if (checkUs === 0) {
      if (isBroken) throw new Error('the judge is broken')
      return verdict
    }
    return this.#later(checkUs, verdict, isBroken)
  }

  noteBlock(blocked: Pick<ScreenAsk, 'tenantId' | 'keyId' | 'screening'>): void {
    this.noted.push(blocked)
  }

  screenAnswer(): undefined {
    return undefined
  }

  async #later(checkUs: number, verdict: ScreenVerdict, isBroken: boolean): Promise<ScreenVerdict> {
    await this.#clock.sleep(checkUs)
    if (isBroken) throw new Error('the judge is broken')
    return verdict
  }
}

export const injectionRule = (rule: Partial<ScreenRule> = {}): ScreenRule => ({
  screen: 'injection',
  direction: 'input',
  action: 'block',
  onFailure: 'open',
  ...rule,
})

export function screeningTerms(terms: Partial<ScreeningTerms> = {}): ScreeningTerms {
  return {
    version: 'v1',
    rules: [injectionRule()],
    hold: { kind: 'none' },
    join: 'gate',
    isReversible: false,
    allowed: [],
    patterns: [],
    binary: 'pass',
    ...terms,
  }
}

export function screeningOf(terms: Partial<ScreeningTerms> = {}, parts: Partial<Screening> = {}): Screening {
  return { terms: screeningTerms(terms), texts: [], found: [], unscreened: [], ...parts }
}
