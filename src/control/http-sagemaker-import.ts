import { type Clock, usToMs } from '../base/clock.ts'
import { ConfigError } from '../config/config-error.ts'
import { redactedUrl } from '../config/redact.ts'
import { SagemakerRegistry } from '../store/http-sagemaker.ts'
import { importOf, type RegistryImport } from './http-mlflow-import.ts'

/**
 * Which releases does a model package group of SageMaker hold? As for MLflow: versions that are whole and approved become
 * releases, and everybody gets the one in the stage Production, or the newest.
 */
export interface SagemakerAsk {
  readonly group: string
  readonly region: string
  /** A VPC endpoint's address; the region's public one if absent. */
  readonly endpoint?: string | undefined
  readonly credential: {
    readonly accessKeyId: string
    readonly secretKey: string
    readonly sessionToken?: string | undefined
  }
  /** Signatures name the time. */
  readonly clock: Clock
}

export async function readSagemaker(ask: SagemakerAsk): Promise<RegistryImport> {
  const { group, region, endpoint, credential, clock } = ask
  const url = endpoint ?? `https://api.sagemaker.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
  const now = (): Date => new Date(usToMs(clock.now()))
  const versions = await new SagemakerRegistry({ url, region, credential, now }).versions(group)
  const problem = (because: string): ConfigError =>
    new ConfigError([`SageMaker at ${redactedUrl(url)}: ${because}. Check --group, --region and the AWS_… variables.`])
  if (versions.kind === 'failed') throw problem(versions.because)
  if (versions.items.length === 0) throw problem(`the model package group "${group}" has no versions`)
  return importOf(versions.items, {})
}
