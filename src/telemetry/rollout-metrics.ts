import type { MetricFeed } from './metric-feed.ts'

/** Which releases answer, how well, and how far has each rollout got? */
export function declareRolloutMetrics({ registry, on }: MetricFeed): void {
  const attempts = registry.counter({
    name: 'spillway_release_attempts_total',
    help: 'Attempts, by the release that was tried and how they ended.',
    labels: ['release', 'ending'],
  })
  on('attempt-ended', (entry) => attempts.with(entry.releaseId, entry.ending).inc())

  const shadows = registry.counter({
    name: 'spillway_shadow_answers_total',
    help: 'Copies of requests that a release was shown, by how they ended and whether the answer was the same.',
    labels: ['release', 'outcome', 'same'],
  })
  on('shadow-ended', ({ releaseId, outcome, difference }) => {
    const same = difference === undefined ? 'unknown' : difference.isEqual ? 'yes' : 'no'
    shadows.with(releaseId, outcome, same).inc()
  })

  const evaluations = registry.counter({
    name: 'spillway_holdout_evaluations_total',
    help: 'Items of a holdout set that a release has answered.',
    labels: ['release'],
  })
  const scores = registry.counter({
    name: 'spillway_holdout_score_total',
    help: 'Sum of their scores, each from 0 to 1.',
    labels: ['release'],
  })
  on('holdout-evaluated', ({ releaseId, score }) => {
    evaluations.with(releaseId).inc()
    if (score > 0) scores.with(releaseId).inc(score)
  })

  const percent = registry.gauge({
    name: 'spillway_rollout_percent',
    help: 'Share of its model’s requests that a release which is tried gets, in percent.',
    labels: ['model', 'release'],
  })
  const changes = registry.counter({
    name: 'spillway_rollout_changes_total',
    help: 'Changes of a rollout, by kind and by who decided.',
    labels: ['model', 'change', 'by'],
  })
  on('rollout-changed', (entry) => {
    percent.with(entry.model, entry.to).set(entry.percent)
    const isOurs = entry.by === 'judge' || entry.by === 'drift' || entry.by === 'config'
    changes.with(entry.model, entry.change, isOurs ? entry.by : 'hand').inc()
  })
}
