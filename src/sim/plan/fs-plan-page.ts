import { writeFileSync } from 'node:fs'
import type { PlannedFleet } from './fs-plan.ts'
import { renderPlanPage } from './plan-page.ts'
import type { PlanFacts } from './plan-table.ts'

/** Writes the page of a plan; returns its path. */
export function writePlanPage(path: string, plan: PlannedFleet, facts: PlanFacts): string {
  writeFileSync(path, renderPlanPage(plan, facts))
  return path
}
