import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { TestFolder } from '../support/child.ts'
import { run } from '../support/run-cli.ts'
import { upstreamTree } from '../support/start-platform.ts'

/** Backups of the embedded store, as the folder that it is; `backup.long.test.ts` opens what was restored. */
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe('the embedded store', () => {
  it('is restored as the files that it was, with those beside it', async () => {
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const path = join(folder.path, 'store')
    const files = { [join(path, 'PG_VERSION')]: '18\n', [`${path}.files/acme/file-1`]: 'a line\n' }
    mkdirSync(path)
    mkdirSync(`${path}.files/acme`, { recursive: true })
    for (const [file, text] of Object.entries(files)) writeFileSync(file, text)
    const config = folder.write('spillway.yaml', upstreamTree(['http://gpu/v1'], { store: { path } }))
    const backup = join(folder.path, 'backup')
    expect(await run('backup', '--config', config, '--to', backup)).toMatchObject({ code: 0 })
    expect((await run('restore', '--config', config, '--from', backup)).said).toContain('is in the way')
    for (const place of [path, `${path}.files`]) rmSync(place, { recursive: true })
    expect(await run('restore', '--config', config, '--from', backup)).toMatchObject({ code: 0 })
    for (const [file, text] of Object.entries(files)) expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('is not restored from a backup that is damaged, or not whole', { timeout: 60_000 }, async () => {
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const path = join(folder.path, 'store')
    mkdirSync(path)
    writeFileSync(join(path, 'PG_VERSION'), '18\n')
    const config = folder.write('spillway.yaml', upstreamTree(['http://gpu/v1'], { store: { path } }))
    const backup = join(folder.path, 'backup')
    await run('backup', '--config', config, '--to', backup)
    rmSync(path, { recursive: true })
    const told = async (): Promise<string> => (await run('restore', '--config', config, '--from', backup)).said
    writeFileSync(join(backup, 'store', 'PG_VERSION'), '17\n')
    expect(await told()).toContain('the backup is damaged: store/PG_VERSION has changed since')
    rmSync(join(backup, 'store', 'PG_VERSION'))
    expect(await told()).toContain('the backup is not whole: store/PG_VERSION is missing')
    rmSync(join(backup, 'backup.json'))
    expect(await told()).toContain('it has no backup.json')
    expect(existsSync(path)).toBe(false)
  })

  it('says what to use for a database server', async () => {
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const config = folder.write('spillway.yaml', upstreamTree(['http://gpu/v1'], { store: { url: 'postgres://h/x' } }))
    expect((await run('backup', '--config', config, '--to', '/x')).said).toContain('pg_dump --format=custom')
  })
})
