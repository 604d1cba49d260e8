import { secondsToUs, US_PER_S } from '../base/clock.ts'
import { ABUSE_KINDS, ABUSE_RESPONSES, GUARD_ANSWERS, JUDGING_SCREENS } from '../domain/screening.ts'
import type { MetricFeed } from './metric-feed.ts'

/** Embedded models take microseconds; a guard model has half a second by default. */
const CHECK_BOUNDS_S = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]

const VERDICTS = ['passed', 'partial', 'blocked'] as const

/**
 * Metrics of screens: verdicts, findings, what could not be judged, the guard model, abuse over time. Categories are no
 * label: a guard model makes them up.
 */
export function declareScreenMetrics({ registry, on }: MetricFeed): void {
  const verdicts = registry.counter({
    name: 'spillway_screen_verdicts_total',
    help: 'Requests that were judged, by verdict.',
    labels: ['verdict'],
  })
  for (const verdict of VERDICTS) verdicts.with(verdict).inc(0)
  const findings = registry.counter({
    name: 'spillway_screen_findings_total',
    help: 'Findings of screens in judged requests and in answers, by what followed.',
    labels: ['screen', 'direction', 'action'],
  })
  const skipped = registry.counter({
    name: 'spillway_screen_skipped_total',
    help: 'Screens that could not say, of judged requests and of answers.',
    labels: ['screen'],
  })
  for (const screen of JUDGING_SCREENS) skipped.with(screen).inc(0)
  const bounds = CHECK_BOUNDS_S.map(secondsToUs)
  const seconds = registry.histogram({
    name: 'spillway_screen_seconds',
    help: 'Time from a request’s arrival to its verdict.',
    labels: ['verdict'],
    perUnit: US_PER_S,
    bounds,
  })
  on('passages-judged', (entry) => {
    for (const { screen, direction, action, count } of entry.findings)
      findings.with(screen, direction, action).inc(count)
  })
  on('screened', (entry) => {
    verdicts.with(entry.verdict).inc()
    seconds.with(entry.verdict).observe(entry.tookUs)
    for (const { screen, direction, action, count } of entry.findings)
      findings.with(screen, direction, action).inc(count)
    for (const screen of entry.skipped) skipped.with(screen).inc()
  })
  on('answer-screened', (entry) => {
    for (const screen of entry.skipped) skipped.with(screen).inc()
    for (const { screen, direction, action, count } of entry.findings)
      findings.with(screen, direction, action).inc(count)
  })

  const answers = registry.counter({
    name: 'spillway_screen_guard_answers_total',
    help: 'Questions to guard models, by how they ended.',
    labels: ['model', 'answer'],
  })
  const guardSeconds = registry.histogram({
    name: 'spillway_screen_guard_seconds',
    help: 'Time that a guard model took.',
    labels: ['answer'],
    perUnit: US_PER_S,
    bounds,
  })
  for (const answer of GUARD_ANSWERS) guardSeconds.with(answer)
  on('guard-answered', (entry) => {
    answers.with(entry.model, entry.answer).inc()
    guardSeconds.with(entry.answer).observe(entry.tookUs)
  })

  const abuse = registry.counter({
    name: 'spillway_screen_abuse_total',
    help: 'Keys whose requests over time look like abuse, by what followed.',
    labels: ['kind', 'response'],
  })
  for (const kind of ABUSE_KINDS) for (const response of ABUSE_RESPONSES) abuse.with(kind, response).inc(0)
  on('abuse-noticed', (entry) => abuse.with(entry.abuse, entry.response).inc())
}
