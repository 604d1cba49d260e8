import { DcgmUse } from '../actuators/http-dcgm.ts'
import { KubernetesScale } from '../actuators/http-kubernetes-scale.ts'
import { ScaleWebhook } from '../actuators/http-scale-webhook.ts'
import { ScaleCommand } from '../actuators/live-command.ts'
import { IN_CLUSTER } from '../backends/http-kube-watch.ts'
import type { Clock } from '../base/clock.ts'
import type { ActuatorConfig } from '../config/to-autoscale.ts'
import type { Control } from '../control/control.ts'
import type { Actuator, Actuators, CellDrains } from '../lifecycle/autoscale-ports.ts'

/**
 * The actuators and exporters that the settings in force name, made when they are first asked for and again when the
 * settings are others; and drains that hold at every gateway of the cell.
 */
export function makeLiveScaling(clock: Clock, control: () => Control): LiveScaling {
  return { actuators: makeActuators(clock, control), cellDrains: makeCellDrains(control) }
}

interface LiveScaling {
  readonly actuators: Actuators
  readonly cellDrains: CellDrains
}

function makeActuators(clock: Clock, control: () => Control): Actuators {
  const made = new Map<string, { readonly config: ActuatorConfig; readonly actuator: Actuator }>()
  const exporters = new Map<string, { readonly url: string; readonly use: DcgmUse }>()
  const scalingOf = (poolId: string) => control().wanted().pools.get(poolId)?.scaling
  return {
    of(poolId) {
      const config = scalingOf(poolId)?.actuator
      if (config === undefined) {
        made.delete(poolId)
        return undefined
      }
      const known = made.get(poolId)
      if (known?.config === config) return known.actuator
      const actuator = makeActuator(clock, config)
      made.set(poolId, { config, actuator })
      return actuator
    },
    gpuUseRatio(poolId) {
      const url = scalingOf(poolId)?.dcgmUrl
      if (url === undefined) {
        exporters.delete(poolId)
        return undefined
      }
      const known = exporters.get(poolId)
      const exporter = known?.url === url ? known : { url, use: new DcgmUse(clock, url) }
      exporters.set(poolId, exporter)
      return exporter.use.ratio()
    },
  }
}

function makeCellDrains(control: () => Control): CellDrains {
  return {
    // In force here at once; what cannot be written is in the registry's own journal.
    set: (replicaId, isDrained, because) =>
      void control().admin.drain(replicaId, isDrained, { by: 'autoscale', because }),
  }
}

function makeActuator(clock: Clock, config: ActuatorConfig): Actuator {
  switch (config.kind) {
    case 'kubernetes': {
      const { apiUrl = IN_CLUSTER.apiUrl, tokenFile = IN_CLUSTER.tokenPath } = config
      const caFile = config.caFile ?? (apiUrl.startsWith('https:') ? IN_CLUSTER.caPath : undefined)
      return new KubernetesScale({ ...config, clock, apiUrl, tokenFile, caFile })
    }
    case 'command':
      return new ScaleCommand({ ...config, clock })
    case 'webhook':
      return new ScaleWebhook({ ...config, clock, tokenFile: config.tokenFile })
  }
}
