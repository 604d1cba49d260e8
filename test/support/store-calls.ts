import { ACME_KEY, authorization, type TestPlatform } from './start-platform.ts'

/** A call of `/v1` that is answered with JSON: its status, headers and body. */
export interface Called {
  readonly status: number
  readonly headers: Headers
  readonly body: { readonly error?: { readonly code: string; readonly message: string }; readonly id?: string }
}

export async function call(
  platform: TestPlatform,
  method: string,
  path: string,
  body?: unknown,
  key = ACME_KEY,
): Promise<Called> {
  const response = await fetch(platform.baseURL + path, {
    method,
    headers: { 'content-type': 'application/json', ...authorization(key) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Called['body'] }
}
