import type { Problem } from './explain.ts'
import type { Settings } from './schema.ts'

/** Price lists that are good by themselves and would never be in force, or say two things. */
export function checkPrices({ prices }: Settings): Problem[] {
  return prices.flatMap(({ from, models }, i): Problem[] => {
    const path = ['prices', i]
    const problems: Problem[] = []
    if (from !== undefined && Number.isNaN(Date.parse(from)))
      problems.push({ path: [...path, 'from'], text: `is "${from}", which is no day of the calendar` })
    for (const [j, { model }] of models.entries()) {
      if (models.slice(0, j).some((other) => other.model === model))
        problems.push({ path: [...path, 'models', j, 'model'], text: `is "${model}" a second time. Keep one of them` })
    }
    return problems
  })
}
