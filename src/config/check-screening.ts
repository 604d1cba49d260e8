import { whyNotPatterns } from '../base/linear-matcher.ts'
import type { OwnPattern } from '../domain/screening.ts'
import type { Path, Problem } from './explain.ts'
import { nearest } from './nearest.ts'
import type { ScreeningConfig, Settings } from './schema.ts'
import { toScreening } from './to-screening.ts'

/** Settings of screening that are good by themselves and cannot work together. */
export function checkScreening({ screening, tenants, models }: Settings): Problem[] {
  return [
    ...checkOne(screening, {}, ['screening'], models),
    ...tenants.flatMap(({ screening: own }, i) =>
      own === undefined ? [] : checkOne(screening, own, ['tenants', i, 'screening'], models),
    ),
  ]
}

function checkOne(platform: ScreeningConfig, own: ScreeningConfig, path: Path, models: Settings['models']): Problem[] {
  const isPlatform = path.length === 1
  const here = isPlatform ? platform : own
  const terms = toScreening(platform, own)
  const isOn = (screen: string): boolean => terms?.rules.some((rule) => rule.screen === screen) === true
  return [
    ...checkGuard(here.guardModel, [...path, 'guardModel'], models),
    ...checkPatterns(here.ownPatterns ?? [], [...path, 'ownPatterns'], terms?.patterns ?? []),
    ...(isOn('guard') && terms?.guard === undefined
      ? [{ path: [...path, 'guard'], text: 'is on, but there is no model to ask. Set guardModel' }]
      : []),
    ...(isOn('patterns') && terms?.patterns.length === 0
      ? [
          {
            path: [...path, 'patterns'],
            text: 'is on, but there are no patterns to look for. List them in ownPatterns',
          },
        ]
      : []),
    ...(!isPlatform && (here.ownPatterns?.length ?? 0) > 0 && !isOn('patterns')
      ? [{ path: [...path, 'ownPatterns'], text: 'has no effect: the screen is off. Set patterns to redact or block' }]
      : []),
  ]
}

function checkGuard(guard: ScreeningConfig['guardModel'], path: Path, models: Settings['models']): Problem[] {
  if (guard === undefined) return []
  const problems: Problem[] = []
  const known = models.filter(({ kind }) => kind === 'chat').map(({ name }) => name)
  if (!known.includes(guard.model)) {
    const guess = nearest(guard.model, known)
    const advice = guess === undefined ? `Known: ${known.join(', ') || 'none'}` : `Did you mean "${guess}"?`
    problems.push({ path: [...path, 'model'], text: `is "${guard.model}", which is no chat model. ${advice}` })
  }
  if (guard.greyFrom >= guard.greyTo) {
    const text = `is ${guard.greyFrom}, not below greyTo (${guard.greyTo}): the model would never be asked. Lower it`
    problems.push({ path: [...path, 'greyFrom'], text })
  }
  return problems
}

function checkPatterns(
  patterns: NonNullable<ScreeningConfig['ownPatterns']>,
  path: Path,
  all: readonly OwnPattern[],
): Problem[] {
  const problems = patterns.flatMap(({ name, expression }, i): Problem[] => {
    const found: Problem[] = []
    if (patterns.slice(0, i).some((other) => other.name === name))
      found.push({ path: [...path, i, 'name'], text: `is "${name}" a second time. Give each its own name` })
    const because = whyNotPatterns([expression])
    if (because !== undefined) found.push({ path: [...path, i, 'expression'], text: `cannot be used: ${because}` })
    return found
  })
  if (problems.length > 0 || patterns.length === 0) return problems
  // Those of the platform and of the tenant run as one.
  const because = whyNotPatterns(all.map(({ expression }) => expression))
  return because === undefined ? [] : [{ path, text: `cannot be used together: ${because}` }]
}
