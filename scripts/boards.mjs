// Writes deploy/grafana/*.json from the tables below; a test fails when they differ. usage: npm run boards
//
// A board is a list of rows, a row a list of panels: title, unit, one or more [expression, legend]. Every expression names
// metrics of docs/operations/metrics.md only, and a test runs each against a Prometheus after a load.
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = 'deploy/grafana'
const WINDOW = '$__rate_interval'

const rate = (metric, by, filter = '') => `sum by (${by}) (rate(${metric}${filter}[${WINDOW}]))`
const quantile = (q, metric, by, filter = '') =>
  `histogram_quantile(${q}, sum by (le, ${by}) (rate(${metric}_bucket${filter}[${WINDOW}])))`
const kept = (by) =>
  `sum by (${by}) (rate(spillway_promises_total{kept="yes"}[${WINDOW}])) / sum by (${by}) (rate(spillway_promises_total[${WINDOW}]))`

const BOARDS = [
  {
    name: 'fleet',
    title: 'Spillway: fleet',
    rows: [
      [
        ['Promises kept', 'percentunit', [kept('model'), '{{model}}']],
        ['Requests a second by outcome', 'reqps', [rate('spillway_requests_total', 'outcome'), '{{outcome}}']],
        [
          'Refusals a second by reason',
          'reqps',
          [rate('spillway_requests_total', 'code', '{code!="none"}'), '{{code}}'],
        ],
      ],
      [
        ['Pressure (1 is full)', 'short', ['spillway_pool_pressure', '{{pool}}']],
        ['Waiting for a turn', 'short', ['spillway_queue_depth', '{{pool}}']],
        ['Leases held', 'short', ['spillway_pool_in_flight', '{{pool}}']],
      ],
      [
        [
          'First token, p95',
          's',
          [quantile(0.95, 'spillway_time_to_first_token_seconds', 'model, band'), '{{model}} {{band}}'],
        ],
        [
          'Between tokens, p95',
          's',
          [quantile(0.95, 'spillway_inter_token_seconds', 'model, band'), '{{model}} {{band}}'],
        ],
        [
          'Wait, prefill, decode, p95',
          's',
          [quantile(0.95, 'spillway_queue_wait_seconds', 'model'), 'wait {{model}}'],
          [quantile(0.95, 'spillway_prefill_seconds', 'model'), 'prefill {{model}}'],
          [quantile(0.95, 'spillway_decode_seconds', 'model'), 'decode {{model}}'],
        ],
      ],
      [
        ['Replicas that are ready', 'short', ['spillway_replica_ready', '{{replica}}']],
        [
          'Attempts a second by ending',
          'reqps',
          [rate('spillway_attempts_total', 'replica, ending'), '{{replica}} {{ending}}'],
        ],
        ['Tokens a second', 'short', ['sum by (pool, kind) (spillway_pool_tokens_per_second)', '{{pool}} {{kind}}']],
      ],
      [
        [
          'Engine time by phase (seconds a second)',
          'short',
          [rate('spillway_engine_seconds_total', 'phase'), '{{phase}}'],
        ],
        [
          'GPU use: busy, and of full work',
          'percentunit',
          ['spillway_gpu_busy_ratio', 'busy {{pool}}'],
          ['spillway_pool_utilization_ratio', 'full work {{pool}}'],
        ],
        ['GPU memory of a request, p95', 'bytes', [quantile(0.95, 'spillway_request_kv_bytes', 'pool'), '{{pool}}']],
      ],
      [
        ['Event loop, p99 delay', 's', ['spillway_event_loop_delay_seconds{at="p99"}', '{{instance}}']],
        ['CPU of a process', 'percentunit', [`rate(process_cpu_seconds_total[${WINDOW}])`, '{{instance}}']],
        ['Memory', 'bytes', ['process_resident_memory_bytes', '{{instance}}']],
      ],
    ],
  },
  {
    name: 'tenants',
    title: 'Spillway: tenants',
    rows: [
      [
        ['Promises kept', 'percentunit', [kept('tenant'), '{{tenant}}']],
        ['Requests a second', 'reqps', [rate('spillway_requests_total', 'tenant'), '{{tenant}}']],
        [
          'Refused',
          'percentunit',
          [
            `sum by (tenant) (rate(spillway_requests_total{code!="none"}[${WINDOW}])) / sum by (tenant) (rate(spillway_requests_total[${WINDOW}]))`,
            '{{tenant}}',
          ],
        ],
      ],
      [
        ['Tokens a second', 'short', [rate('spillway_tokens_total', 'tenant, kind'), '{{tenant}} {{kind}}']],
        [
          'Refusals by tenant and reason',
          'reqps',
          [`topk(15, ${rate('spillway_requests_total', 'tenant, code', '{code!="none"}')})`, '{{tenant}} {{code}}'],
        ],
        [
          'GPU memory, token-seconds a second',
          'short',
          [rate('spillway_kv_token_seconds_total', 'tenant'), '{{tenant}}'],
        ],
      ],
      [
        ["Fairness (Jain's index)", 'short', ['spillway_pool_fairness_index', '{{pool}}']],
        ['Degraded answers a second', 'reqps', [rate('spillway_degraded_total', 'model, rung'), '{{model}} {{rung}}']],
        [
          'Changes of rung a minute',
          'short',
          ['60 * sum by (pool, rung) (rate(spillway_rung_changes_total[5m]))', '{{pool}} {{rung}}'],
        ],
      ],
    ],
  },
  {
    name: 'rollout-and-money',
    title: 'Spillway: rollout and money',
    rows: [
      [
        ['Share of the release on trial', 'percent', ['spillway_rollout_percent', '{{model}} {{release}}']],
        [
          'Attempts a second by release',
          'reqps',
          [rate('spillway_release_attempts_total', 'release, ending'), '{{release}} {{ending}}'],
        ],
        [
          'Changes of rollouts',
          'short',
          [
            'sum by (model, change, by) (increase(spillway_rollout_changes_total[1h]))',
            '{{model}} {{change}} by {{by}}',
          ],
        ],
      ],
      [
        [
          'Cost an hour by tenant',
          'currencyUSD',
          ['3600 * sum by (tenant, kind) (rate(spillway_cost_usd_total[5m]))', '{{tenant}} {{kind}}'],
        ],
        [
          'Cost that no tenant pays, an hour',
          'currencyUSD',
          ['3600 * sum by (pool, line) (rate(spillway_platform_cost_usd_total[5m]))', '{{pool}} {{line}}'],
        ],
        ['Price of a million tokens', 'currencyUSD', ['spillway_tenant_usd_per_million_tokens', '{{tenant}}']],
      ],
      [
        ['Bill an hour', 'currencyUSD', ['3600 * sum by (pool) (rate(spillway_bill_usd_total[5m]))', '{{pool}}']],
        ['GPUs busy', 'percentunit', ['spillway_gpu_busy_ratio', '{{pool}}']],
        ['Saved an hour', 'currencyUSD', ['3600 * sum by (by) (rate(spillway_saved_usd_total[5m]))', '{{by}}']],
      ],
    ],
  },
]

const PANEL_HEIGHT = 8
const BOARD_WIDTH = 24
const SOURCE = { type: 'prometheus', uid: '$source' }

function panelOf([title, unit, ...targets], { id, x, y, w }) {
  return {
    id,
    title,
    type: 'timeseries',
    datasource: SOURCE,
    gridPos: { h: PANEL_HEIGHT, w, x, y },
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 8, showPoints: 'never' } }, overrides: [] },
    options: {
      legend: { displayMode: 'table', placement: 'bottom', calcs: ['lastNotNull', 'max'] },
      tooltip: { mode: 'multi' },
    },
    targets: targets.map(([expr, legendFormat], i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: SOURCE,
      expr,
      legendFormat,
    })),
  }
}

function boardText({ name, title, rows }) {
  let id = 0
  const panels = rows.flatMap((row, nth) => {
    const w = BOARD_WIDTH / row.length
    return row.map((panel, i) => panelOf(panel, { id: ++id, x: i * w, y: nth * PANEL_HEIGHT, w }))
  })
  const board = {
    uid: `spillway-${name}`,
    title,
    tags: ['spillway'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [{ name: 'source', label: 'Prometheus', type: 'datasource', query: 'prometheus', current: {} }],
    },
    panels,
  }
  return `${JSON.stringify(board, null, 2)}\n`
}

/** Path → text of every board. */
export const boardFiles = () => BOARDS.map((board) => [`${FOLDER}/${board.name}.json`, boardText(board)])

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const root = join(dirname(fileURLToPath(import.meta.url)), '..')
  mkdirSync(join(root, FOLDER), { recursive: true })
  for (const [path, text] of boardFiles()) writeFileSync(join(root, path), text)
}
