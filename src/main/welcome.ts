import { DEMO_ADMIN_KEY, DEMO_KEYS } from '../config/demo.ts'
import type { Config } from '../config/schema.ts'

/** The text printed when the platform is up: its address, the demo tenants and keys, and three commands to paste. */
export function welcome(config: Config, address: string): string {
  const base = `${address}${config.server.basePath}`
  const lines = ['', `  Spillway is listening on ${base}`, '']
  if (config.console.enabled) lines.push(`  console   ${base}/console`)
  const models = config.models.map((model) => model.name)
  lines.push(`  models    ${models.join(', ')}`)
  for (const { model, backend } of config.pools) {
    if (backend.kind === 'simulated' || backend.tls?.insecure !== true) continue
    lines.push(`  warning   ${model} is reached without checking certificates (tls.insecure)`)
  }
  if (config.file !== undefined) return [...lines, `  settings  ${config.file}`, ''].join('\n')

  const width = Math.max(...config.tenants.map((tenant) => tenant.id.length))
  config.tenants.forEach((tenant, index) => {
    const secret = DEMO_KEYS.find((key) => key.tenantId === tenant.id)?.secret ?? ''
    const label = index === 0 ? 'tenants ' : '        '
    lines.push(
      `  ${label}  ${tenant.id.padEnd(width)}  ${secret.padEnd(16)} weight ${tenant.weight}, SLO ${tenant.slo}`,
    )
  })
  lines.push(`  admin     ${DEMO_ADMIN_KEY} (spillway models list, spillway rollout show)`)
  const metrics =
    config.server.metricsPort === undefined
      ? `curl ${base}/metrics -H 'authorization: Bearer ${DEMO_ADMIN_KEY}'`
      : `port ${config.server.metricsPort}, /metrics`
  lines.push(`  metrics   ${metrics}`)
  const key = DEMO_KEYS[0]?.secret ?? ''
  const model = models[0] ?? ''
  const body = (more: string): string =>
    `'{"model":"${model}","messages":[{"role":"user","content":"What is a spillway for? It lets water pass a dam."}],"max_tokens":100${more}}'`
  const curl = (flags: string, more: string): string =>
    `  curl ${flags}${base}/v1/chat/completions -H 'authorization: Bearer ${key}' \\\n    -H 'content-type: application/json' -d ${body(more)}`
  return [
    ...lines,
    '',
    '  Try it:',
    '',
    curl('', ''),
    '',
    curl('-N ', ',"stream":true'),
    '',
    `  node --input-type=module -e "import { createInterface } from 'node:readline'; import { Readable } from 'node:stream';`,
    `    const answer = await fetch('${base}/v1/chat/completions', { method: 'POST', headers: { authorization: 'Bearer ${key}', 'content-type': 'application/json' },`,
    `      body: JSON.stringify({ model: '${model}', stream: true, max_tokens: 100, messages: [{ role: 'user', content: 'What is a weir? A weir holds water.' }] }) });`,
    `    for await (const line of createInterface({ input: Readable.fromWeb(answer.body) }))`,
    `      if (line.startsWith('data: {')) process.stdout.write(JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? '')"`,
    '',
    `  Any OpenAI SDK works too, with the base URL ${base}/v1 and a key from above.`,
    '',
    '  Ctrl-C stops gently.',
    '',
  ].join('\n')
}
