import { createHash, createHmac } from 'node:crypto'
import { type Asked, json, type Reply, ScriptedServer } from './scripted-server.ts'

/**
 * A model registry that speaks SageMaker's JSON protocol and checks every signature by itself, from the headers that came:
 * it shares no code with the signer.
 */
export const AWS_CREDENTIAL = {
  accessKeyId: 'AKIDEXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'a-session-token',
}
export const AWS_REGION = 'eu-central-1'

export interface ScriptedPackage {
  readonly ModelPackageVersion: number
  readonly [member: string]: unknown
}

const ARN = 'arn:aws:sagemaker:eu-central-1:123456789012:model-package/llama'

export class SagemakerServer {
  packages: readonly ScriptedPackage[] = []
  /** Answers of the next calls, before those of the registry. */
  readonly next: Reply[] = []
  readonly operations: string[] = []
  pageSize = 2
  /** Every page says that there is another. */
  isEndless = false
  server!: ScriptedServer

  static async start(): Promise<SagemakerServer> {
    const registry = new SagemakerServer()
    registry.server = await ScriptedServer.start({ 'POST /': (asked, res) => registry.#answer(asked)(asked, res) })
    return registry
  }

  get url(): string {
    return this.server.url
  }

  close(): Promise<void> {
    return this.server.close()
  }

  #answer(asked: Asked): Reply {
    const [, operation = ''] = /^SageMaker\.(\w+)$/.exec(String(asked.headers['x-amz-target'])) ?? []
    this.operations.push(operation)
    const scripted = this.next.shift()
    if (scripted !== undefined) return scripted
    if (asked.headers['content-type'] !== 'application/x-amz-json-1.1') return awsError('SerializationException')
    if (!isSigned(asked)) return awsError('InvalidSignatureException', 403)
    const body = JSON.parse(asked.body) as Record<string, unknown>
    return operation === 'ListModelPackages' ? this.#list(body) : this.#describe(body)
  }

  #list({ ModelPackageGroupName: group, NextToken: next = '0', MaxResults: max }: Record<string, unknown>): Reply {
    if (group !== 'llama' || max !== 100) return awsError('ValidationException')
    const at = Number(next)
    const list = this.packages
      .slice(at, at + this.pageSize)
      .map(({ Containers: _containers, SourceUri: _source, ...summary }) => ({
        ModelPackageGroupName: 'llama',
        ModelPackageArn: `${ARN}/${summary.ModelPackageVersion}`,
        ModelPackageStatus: 'Completed',
        ModelApprovalStatus: 'Approved',
        CreationTime: 1_700_000_000.5 + summary.ModelPackageVersion,
        ...summary,
      }))
    const more = this.isEndless || at + this.pageSize < this.packages.length
    return json({ ModelPackageSummaryList: list, ...(more && { NextToken: String(at + this.pageSize) }) })
  }

  #describe({ ModelPackageName: name }: Record<string, unknown>): Reply {
    const found = this.packages.find(({ ModelPackageVersion: version }) => name === `${ARN}/${version}`)
    if (found === undefined) return awsError('ValidationException')
    const { Containers = [], SourceUri } = found
    return json({ ModelPackageArn: name, InferenceSpecification: { Containers }, SourceUri })
  }
}

export const awsError = (type: string, status = 400): Reply =>
  json({ __type: `com.amazon.coral.service#${type}`, Message: AWS_CREDENTIAL.secretKey }, status)

/** Signature version 4, checked as its documentation describes it. */
function isSigned({ method, path, headers, body }: Asked): boolean {
  const [, scope = '', names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/(\S+?), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      String(headers.authorization),
    ) ?? []
  const signed = names.split(';')
  const required = ['content-type', 'host', 'x-amz-date', 'x-amz-security-token', 'x-amz-target']
  if (!required.every((name) => signed.includes(name))) return false
  if (headers['x-amz-security-token'] !== AWS_CREDENTIAL.sessionToken) return false
  const date = String(headers['x-amz-date'])
  if (scope !== `${date.slice(0, 8)}/${AWS_REGION}/sagemaker/aws4_request`) return false
  const lines = signed.map((name) => `${name}:${String(headers[name])}\n`).join('')
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
  const canonical = `${method}\n${path}\n\n${lines}\n${names}\n${hash(body)}`
  const text = `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash(canonical)}`
  let key: Buffer | string = `AWS4${AWS_CREDENTIAL.secretKey}`
  for (const part of [...scope.split('/'), text]) key = createHmac('sha256', key).update(part).digest()
  return Buffer.from(key).toString('hex') === signature
}
