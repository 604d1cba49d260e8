import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { TestFolder } from '../../test/support/child.ts'
import { JobGateway } from '../../test/support/job-gateway.ts'
import { ACME_KEY, authorization, postJson } from '../../test/support/start-platform.ts'

/**
 * How long does it take to take in a large job, and how much memory? A file is uploaded to a gateway of its own process and
 * made a job; no replica is ready, so that nothing runs. `--lines`, `--bytes` of each.
 */
const { values } = parseArgs({
  options: { lines: { type: 'string', default: '50000' }, bytes: { type: 'string', default: '1000' } },
})
const count = Number(values.lines)
const bytes = Number(values.bytes)
const folder = new TestFolder()
const gateway = new JobGateway(folder, 'one', { store: { path: `${folder.path}/data` }, jobs: { runningMax: 1 } })

/** Resident bytes of the gateway, and its CPU seconds so far. */
function usage(): { readonly mb: number; readonly cpuS: number } {
  const pid = String(gateway.pid)
  const kb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return { mb: kb / 1_024, cpuS: (Number(fields[11]) + Number(fields[12])) / 100 }
}

function textOf(): string {
  const lines: string[] = []
  for (let n = 0; n < count; n++) {
    const line = (content: string): string =>
      JSON.stringify({
        custom_id: `line-${n}`,
        method: 'POST',
        url: '/v1/chat/completions',
        body: { model: 'sim', messages: [{ role: 'user', content }], max_tokens: 4 },
      })
    lines.push(line('x'.repeat(Math.max(1, bytes - 1 - line('').length))))
  }
  return lines.join('\n')
}

async function uploaded(text: string): Promise<string> {
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new File([text], 'asked.jsonl'))
  const sent = await fetch(`${gateway.base}/v1/files`, { method: 'POST', headers: authorization(ACME_KEY), body: form })
  return ((await sent.json()) as { id: string }).id
}

async function validated(fileId: string): Promise<string> {
  const ask = { input_file_id: fileId, endpoint: '/v1/chat/completions', completion_window: '24h' }
  const { id } = (await (await postJson(`${gateway.base}/v1/batches`, ask)).json()) as { id: string }
  for (;;) {
    const { status } = await gateway.see(id)
    if (status !== 'validating') return status
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

try {
  await gateway.start()
  // The database is opened, and the code warm.
  await validated(await uploaded(textOf().slice(0, 20 * bytes)))
  const text = textOf()
  const idle = usage()
  let peakMb = idle.mb
  const watch = setInterval(() => {
    peakMb = Math.max(peakMb, usage().mb)
  }, 20)
  const from = performance.now()
  const fileId = await uploaded(text)
  const uploadedAt = performance.now()
  const afterUpload = usage()
  const status = await validated(fileId)
  const doneAt = performance.now()
  clearInterval(watch)
  const after = usage()
  console.log(`lines, megabytes             ${count}, ${(text.length / 1e6).toFixed(1)}`)
  console.log(`status                       ${status}`)
  console.log(
    `upload                       ${((uploadedAt - from) / 1_000).toFixed(2)} s, CPU ${(afterUpload.cpuS - idle.cpuS).toFixed(2)} s`,
  )
  console.log(
    `validation                   ${((doneAt - uploadedAt) / 1_000).toFixed(2)} s, CPU ${(after.cpuS - afterUpload.cpuS).toFixed(2)} s`,
  )
  console.log(
    `memory before, most          ${idle.mb.toFixed(0)} MB, ${peakMb.toFixed(0)} MB (+${(peakMb - idle.mb).toFixed(0)})`,
  )
} finally {
  await gateway.end()
  folder.remove()
}
