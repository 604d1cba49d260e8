import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CopiedTree, LAUNCHER, nodes } from '../support/copied-tree.ts'

/** The launcher in a copy of the tree; `npm-start.long.test.ts` has `npm start`, and `start.long.test.ts` what each does with signals. */
const tree = new CopiedTree()

describe('the launcher', () => {
  it.each(nodes())('goes on under the pinned Node, started by %s', async (node) => {
    const program = tree.start(node, [LAUNCHER, '--version', '--json'])
    expect(await program.ended).toBe(0)
    expect(JSON.parse(program.said()).node).toBe(process.versions.node)
  })

  it('says in one line what is wrong in a file', async () => {
    writeFileSync(join(tree.path, 'bad.yaml'), 'server:\n  prot: 1\ntenants: [{ id: a }]\n')
    expect(await tree.fail(['serve', '--config', 'bad.yaml'])).toEqual({
      exitCode: 1,
      said: 'spillway: bad.yaml:2: server.prot is not a setting. Did you mean "port"?\n',
    })
  })
})
