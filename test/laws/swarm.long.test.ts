import { it } from 'vitest'
import { runSwarm } from './run-swarm.ts'

it('every law holds in any run of any configuration', { timeout: 240_000 }, () => runSwarm(60))
