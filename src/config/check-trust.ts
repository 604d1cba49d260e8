import type { Path, Problem } from './explain.ts'
import type { PoolConfig } from './schema.ts'

/** Who a pool's engines take us for: a key, or a credential that is renewed, and certificates. */
type Reached = Exclude<PoolConfig['backend'], { kind: 'simulated' }>

export function checkTrust(backend: Reached, path: Path): Problem[] {
  const { apiKey, apiKeyEnv, auth, tls, credential } = backend
  const problems = [
    ...(credential === undefined ? [] : checkCredential(backend, credential, path)),
    ...checkSageMaker(backend, path),
  ]
  if (apiKey !== undefined && apiKeyEnv !== undefined) {
    problems.push({ path: [...path, 'apiKey'], text: 'and apiKeyEnv are both set. Keep apiKeyEnv' })
  }
  if (auth === 'none' && (apiKey ?? apiKeyEnv) !== undefined) {
    problems.push({ path: [...path, 'auth'], text: 'is "none", but a key is given. Remove one of them' })
  }
  if ((tls?.certFile === undefined) !== (tls?.keyFile === undefined)) {
    problems.push({
      path: [...path, 'tls'],
      text: 'has a certificate without its key, or the other way round. Give both',
    })
  }
  return problems
}

function checkCredential(backend: Reached, credential: NonNullable<Reached['credential']>, path: Path): Problem[] {
  const { file, command, metadata, accessKeyId } = credential
  const at = [...path, 'credential']
  const sources = [file, command, metadata, accessKeyId].filter((source) => source !== undefined)
  const problems: Problem[] = []
  if (sources.length !== 1) {
    problems.push({ path: at, text: 'has no source, or several. Give it file, command, metadata or accessKeyId' })
  }
  const hasKey = (backend.apiKey ?? backend.apiKeyEnv) !== undefined
  if (hasKey && accessKeyId === undefined) {
    problems.push({ path: at, text: 'and a key are both given. Remove one of them' })
  }
  if (!hasKey && accessKeyId !== undefined) {
    problems.push({ path: [...at, 'accessKeyId'], text: 'has no secret. Name it with apiKeyEnv' })
  }
  if (accessKeyId !== undefined && !isSageMaker(backend)) {
    problems.push({ path: [...at, 'accessKeyId'], text: 'signs calls of SageMaker alone. Set engine to sagemaker' })
  }
  return problems
}

const isSageMaker = (backend: Reached): backend is Extract<Reached, { kind: 'http-openai' }> =>
  backend.kind === 'http-openai' && backend.engine === 'sagemaker'

function checkSageMaker(backend: Reached, path: Path): Problem[] {
  if (!isSageMaker(backend)) return []
  const problems: Problem[] = []
  if (backend.credential === undefined) {
    problems.push({ path: [...path, 'engine'], text: 'is sagemaker, whose calls are signed. Add a credential' })
  }
  if (backend.dialects.length > 0) {
    problems.push({ path: [...path, 'dialects'], text: 'are not for sagemaker, which has one path. Remove them' })
  }
  return problems
}
