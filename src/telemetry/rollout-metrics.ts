import type { MetricFeed } from './metric-feed.ts'

/** Metrics of releases: attempts, shadows, holdout scores, and the step of each rollout. */
export function declareRolloutMetrics({ registry, on }: MetricFeed): void {
  const attempts = registry.counter({
    name: 'spillway_release_attempts_total',
    help: 'Attempts, by release and by how they ended.',
    labels: ['release', 'ending'],
  })
  on('attempt-ended', (entry) => attempts.with(entry.releaseId, entry.ending).inc())

  const shadows = registry.counter({
    name: 'spillway_shadow_answers_total',
    help: 'Copies of requests sent to a release, by outcome and by whether the answer was the same.',
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
    help: 'Sum of the scores of holdout items, each from 0 to 1.',
    labels: ['release'],
  })
  on('holdout-evaluated', ({ releaseId, score }) => {
    evaluations.with(releaseId).inc()
    if (score > 0) scores.with(releaseId).inc(score)
  })

  const memories = registry.counter({
    name: 'spillway_rollout_memory_writes_total',
    help: 'Writes of how far a rollout has got: kept, failed and tried again, lost because the process ended first, or overruled because another gateway leads.',
    labels: ['model', 'outcome'],
  })
  on('rollout-memory', ({ model, outcome }) => memories.with(model, outcome).inc())

  const percent = registry.gauge({
    name: 'spillway_rollout_percent',
    help: 'Share of the model’s requests that the release on trial gets, in percent.',
    labels: ['model', 'release'],
  })
  const changes = registry.counter({
    name: 'spillway_rollout_changes_total',
    help: 'Changes of a rollout, by kind and by what decided.',
    labels: ['model', 'change', 'by'],
  })
  on('rollout-followed', ({ model, to, percent: share }) => percent.with(model, to).set(share))
  on('rollout-changed', (entry) => {
    percent.with(entry.model, entry.to).set(entry.percent)
    const isOurs = entry.by === 'judge' || entry.by === 'drift' || entry.by === 'config'
    changes.with(entry.model, entry.change, isOurs ? entry.by : 'hand').inc()
  })

  const leads = registry.gauge({
    name: 'spillway_leader',
    help: 'Whether this gateway leads: over all gateways of a cell the sum is 1.',
    labels: ['duty'],
  })
  const missing = registry.gauge({
    name: 'spillway_leader_missing',
    help: 'Whether nobody is known to lead, as this gateway sees it: the store is away, or cannot say.',
    labels: ['duty'],
  })
  const terms = registry.counter({
    name: 'spillway_leader_changes_total',
    help: 'Times that this gateway began to lead, to follow, or to know of no leader.',
    labels: ['duty', 'role'],
  })
  on('leader-changed', ({ name, role }) => {
    leads.with(name).set(role === 'leads' ? 1 : 0)
    missing.with(name).set(role === 'nobody' ? 1 : 0)
    terms.with(name, role).inc()
  })
}
