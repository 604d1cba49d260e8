import type { Command } from './command.ts'
import { ADMIN_FLAGS, AdminClient, argumentOf, BECAUSE_FLAG, becauseOf, under } from './http-admin-client.ts'

/** `spillway tenants pause` and `spillway admission`: what an operator orders when something goes wrong. */
const pauseCommand = (name: string, state: 'paused' | 'active', summary: string, done: string): Command => ({
  name,
  summary,
  about: 'TENANT is the id of a tenant, of the configuration file or made at run time. Admitted requests finish.',
  argument: 'TENANT',
  flags: { ...BECAUSE_FLAG, ...ADMIN_FLAGS },
  examples: [`spillway ${name} acme --because "a loop in its client"`],
  async run(flags, io) {
    const id = argumentOf(flags, 'tenant', `${name} acme --because "a loop in its client"`)
    const because = becauseOf(flags)
    const answer = await new AdminClient(flags).call('POST', under('/tenants', id), { state, because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : done)
    return 0
  },
})

const modeCommand = (mode: 'observe' | 'enforce', summary: string, done: string): Command => ({
  name: `admission ${mode}`,
  summary,
  about: 'Holds at every gateway of the database and after a restart, until the other mode is ordered.',
  flags: { ...BECAUSE_FLAG, ...ADMIN_FLAGS },
  examples: [`spillway admission ${mode} --because "refusals look wrong"`],
  async run(flags, io) {
    const because = becauseOf(flags)
    const answer = await new AdminClient(flags).call('POST', '/admission', { mode, because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : done)
    return 0
  },
})

const showCommand: Command = {
  name: 'admission show',
  summary: 'whether admission enforces its verdicts, and which tenants are paused',
  about: 'The mode is the configuration file\u2019s unless an administrator has ordered another one.',
  flags: ADMIN_FLAGS,
  examples: ['spillway admission show'],
  async run(flags, io) {
    const answer = await new AdminClient(flags).call<ShownAdmission>('GET', '/admission')
    if (flags['json'] === true) io.out(JSON.stringify(answer))
    else {
      const { mode, modeInFile, paused } = answer
      io.out(`mode: ${mode}${mode === modeInFile ? '' : `, by an administrator's order; the file says ${modeInFile}`}`)
      for (const { tenant, because } of paused) io.out(`paused: ${tenant} (${because})`)
    }
    return 0
  },
}

interface ShownAdmission {
  readonly mode: string
  readonly modeInFile: string
  readonly paused: readonly { readonly tenant: string; readonly because: string }[]
}

export const admissionCommands: readonly Command[] = [
  pauseCommand(
    'tenants pause',
    'paused',
    'refuse the new requests of a tenant; admitted ones finish',
    'New requests of the tenant are refused with the code tenant_paused. "spillway tenants resume" ends that.',
  ),
  pauseCommand('tenants resume', 'active', 'take requests of a paused tenant again', 'The tenant is served again.'),
  modeCommand('observe', 'let every request in, and only say what would have been refused', 'Admission observes only.'),
  modeCommand('enforce', 'carry out the verdicts of admission', 'Admission enforces its verdicts.'),
  showCommand,
]
