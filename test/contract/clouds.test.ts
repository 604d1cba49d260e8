import { type CloudUnderTest, overDesk, overTokens } from '../support/fake-cloud.ts'
import { AWS_TEST_REGION, framed, KeyDesk } from '../support/fake-sagemaker.ts'
import { answers, type Behaviour, fails } from '../support/fake-upstream.ts'
import { describeBackend } from './backend.contract.ts'

/** Endpoints of clouds, scripted on loopback: no cloud was asked. */

const endlessly = answers({ words: Array.from({ length: 10_000 }, (_, i) => `w${i} `), everyMs: 2 })

describeCloud('Vertex AI', (behaviour) => overTokens('vertex', '/v1/projects/p/locations/r/endpoints/7', behaviour))
describeCloud('Azure ML', (behaviour) => overTokens('azure-ml', '/v1', behaviour))

describeCloud('SageMaker', (behaviour) =>
  overDesk(new KeyDesk(), { engine: 'sagemaker', region: AWS_TEST_REGION }, '/endpoints/llama-8b', framed(behaviour)),
)
describeCloud('SageMaker, frames and lines cut anywhere', (behaviour) =>
  overDesk(
    new KeyDesk(),
    { engine: 'sagemaker', region: AWS_TEST_REGION },
    '/endpoints/llama-8b',
    framed(behaviour, { partBytes: 7, writeBytes: 11 }),
  ),
)

function describeCloud(name: string, over: (behaviour: Behaviour) => Promise<CloudUnderTest>): void {
  describeBackend({
    name: `http-openai, ${name}`,
    well: () => over(answers({ everyMs: 1 })),
    endless: () => over(endlessly),
    full: () => over(fails(429, { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } })),
    unable: () => over(fails(400, { error: { message: 'no' } })),
    lost: async () => {
      const under = await over(answers())
      await under.upstream.close()
      return under
    },
    lostInTheMiddle: () => over(answers({ breaksAfter: 3, everyMs: 2 })),
  })
}
