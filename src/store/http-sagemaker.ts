import { type AwsService, callAws } from '../aws/http-json-call.ts'
import type { RegistryAnswer, RegistryVersion } from './http-mlflow.ts'

/**
 * Reads the versions of a model package group of SageMaker's model registry, page by page; changes nothing there. Where
 * the weights are is told only by the description of each package, which is asked for those that can be served.
 */
export type SagemakerOptions = Pick<AwsService, 'url' | 'region' | 'credential' | 'now' | 'timeoutMs' | 'pausesMs'>

/** As many as the service gives. */
const PAGE_SIZE = 100
/** 10,000 versions: with more, the group is wrong. */
const PAGES_MAX = 100
/** Descriptions, each a call: of the newest versions. */
const DESCRIBED_MAX = 500

type Json = Readonly<Record<string, unknown>>

export class SagemakerRegistry {
  readonly #aws: AwsService

  constructor(options: SagemakerOptions) {
    this.#aws = { ...options, service: 'sagemaker', target: 'SageMaker' }
  }

  /** Newest first. Those that cannot be served have another status than `READY`. */
  async versions(group: string): Promise<RegistryAnswer<RegistryVersion>> {
    const listed = await this.#list(group)
    if (listed.kind === 'failed') return listed
    const items: RegistryVersion[] = []
    let described = 0
    for (const summary of listed.items) {
      const status = statusOf(summary)
      if (status !== 'READY') items.push(toVersion(group, summary, status, ''))
      else if (described === DESCRIBED_MAX) items.push(toVersion(group, summary, 'older than the newest 500', ''))
      else {
        described++
        const answer = await callAws(this.#aws, 'DescribeModelPackage', {
          ModelPackageName: summary['ModelPackageArn'],
        })
        if (answer.kind === 'failed') return { ...answer, because: `DescribeModelPackage: ${wordsOf(answer)}` }
        items.push(toVersion(group, summary, status, artifactOf(answer.body)))
      }
    }
    return { kind: 'found', items }
  }

  async #list(group: string): Promise<RegistryAnswer<Json>> {
    const items: Json[] = []
    let next: unknown
    for (let page = 0; page < PAGES_MAX; page++) {
      const answer = await callAws(this.#aws, 'ListModelPackages', {
        ModelPackageGroupName: group,
        MaxResults: PAGE_SIZE,
        SortBy: 'CreationTime',
        SortOrder: 'Descending',
        ...(next !== undefined && { NextToken: next }),
      })
      if (answer.kind === 'failed') return { ...answer, because: `ListModelPackages: ${wordsOf(answer)}` }
      const list = answer.body['ModelPackageSummaryList']
      if (Array.isArray(list)) items.push(...list.map(objectOf))
      next = answer.body['NextToken']
      if (typeof next !== 'string' || next === '') return { kind: 'found', items }
    }
    return { kind: 'failed', because: `there are more than ${PAGES_MAX} pages` }
  }
}

/** What to do, beside what was said. */
function wordsOf({ code, because }: { readonly code?: string; readonly because: string }): string {
  const advice = code === undefined ? undefined : ADVICE.find(([pattern]) => pattern.test(code))?.[1]
  return advice === undefined ? because : `${because}: ${advice}`
}

const ADVICE: ReadonlyArray<readonly [RegExp, string]> = [
  [/^ExpiredToken/, 'the session token has expired. Get new credentials'],
  [/^AccessDenied|^NotAuthorized/, 'allow sagemaker:ListModelPackages and sagemaker:DescribeModelPackage'],
  [/^UnrecognizedClient|^InvalidClientTokenId/, 'the access key or the session token is not known there'],
  [
    /^(InvalidSignature|SignatureDoesNotMatch|IncompleteSignature|RequestExpired)/,
    'check the secret key, the region and the clock',
  ],
  [/^Throttl|^TooManyRequests|^RequestLimit/, 'too many calls. Try again later'],
  [/^(Validation|ResourceNotFound)/, 'check the name of the model package group'],
]

/** A package is served when it is whole and approved. */
function statusOf(summary: Json): string {
  const { ModelPackageStatus: status, ModelApprovalStatus: approval } = summary
  if (status !== 'Completed') return textOf(status) || 'without a status'
  return approval === 'Approved' ? 'READY' : textOf(approval) || 'not approved'
}

function toVersion(group: string, summary: Json, status: string, artifact: string): RegistryVersion {
  const created = summary['CreationTime']
  return {
    model: group,
    version: textOf(summary['ModelPackageVersion']),
    artifact,
    status,
    stage: stageOf(objectOf(summary['ModelLifeCycle'])),
    runId: '',
    aliases: [],
    tags: {},
    // Seconds, with a fraction.
    createdAtMs: typeof created === 'number' ? created * 1_000 : 0,
  }
}

/** A stage that was not approved yet is no stage that the version has: `Production:PendingApproval`. */
function stageOf({ Stage: stage, StageStatus: status }: Json): string {
  return status === undefined || status === 'Approved' ? textOf(stage) : `${textOf(stage)}:${textOf(status)}`
}

/** The weights of the first container that names some; else where the package came from. */
function artifactOf(description: Json): string {
  const containers = objectOf(description['InferenceSpecification'])['Containers']
  for (const container of Array.isArray(containers) ? containers.map(objectOf) : []) {
    const source = objectOf(objectOf(container['ModelDataSource'])['S3DataSource'])
    const uri = textOf(container['ModelDataUrl']) || textOf(source['S3Uri'])
    if (uri !== '') return uri
  }
  return textOf(description['SourceUri'])
}

const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})

const textOf = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')
