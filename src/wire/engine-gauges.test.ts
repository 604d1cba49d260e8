import { describe, expect, it } from 'vitest'
import { readEngineGauges } from './engine-gauges.ts'

const HEAD = '# HELP some_gauge Something.\n# TYPE some_gauge gauge\npython_info{version="3.12"} 1.0\n'

describe('gauges', () => {
  it.each([
    [
      'vLLM',
      'vllm:num_requests_running{engine="0",model_name="m"} 3.0\nvllm:num_requests_waiting{engine="0",model_name="m"} 1.0\n' +
        'vllm:num_requests_waiting_by_reason{reason="x"} 9\nvllm:kv_cache_usage_perc{engine="0"} 0.25\n',
      { runningCount: 3, waitingCount: 1, kvUsageRatio: 0.25 },
    ],
    [
      'vLLM, two data-parallel ranks, with its memory and its preemptions',
      [0, 1]
        .flatMap((engine) => [
          `vllm:num_requests_running{engine="${engine}",model_name="m"} ${3 + engine}.0`,
          `vllm:num_preemptions_total{engine="${engine}",model_name="m"} ${5 * engine}.0`,
          `vllm:num_preemptions_created{engine="${engine}",model_name="m"} 1.7e+09`,
          `vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="${engine}",num_gpu_blocks="2000",num_gpu_blocks_override="7"} 1.0`,
        ])
        .join('\n'),
      // Each line has the blocks of both ranks.
      { runningCount: 7, preemptionCount: 5, kvTokensMax: 32_000 },
    ],
    [
      'vLLM since mid-2026, whose ranks tell the tokens of their own memory',
      [0, 1]
        .map(
          (engine) =>
            `vllm:cache_config_info{block_size="528",engine="${engine}",kv_cache_max_concurrency="3.5",kv_cache_size_tokens="15000",num_gpu_blocks="2000"} 1.0`,
        )
        .join('\n'),
      { kvTokensMax: 30_000 },
    ],
    [
      'vLLM that knows its blocks, and not their tokens',
      'vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="None",num_gpu_blocks="1000"} 1.0\n',
      { kvTokensMax: 16_000 },
    ],
    [
      'SGLang with priorities: the line without one is the sum of the others',
      ['""', '"0"', '"5"']
        .map((priority, i) => `sglang:num_running_reqs{priority=${priority},tp_rank="0"} ${[7, 3, 4][i]}`)
        .join('\n'),
      { runningCount: 7 },
    ],
    [
      'vLLM that has not measured its memory',
      'vllm:num_requests_running 0\nvllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="None"} 1.0\n',
      { runningCount: 0 },
    ],
    [
      'vLLM asleep, and how much it has worked',
      [
        'vllm:generation_tokens_total{engine="0",model_name="m"} 70.0',
        'vllm:generation_tokens_created{engine="0",model_name="m"} 1.7e+09',
        'vllm:iteration_tokens_total_bucket{engine="0",le="8.0",model_name="m"} 5.0',
        'vllm:iteration_tokens_total_count{engine="0",model_name="m"} 9.0',
        'vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 1000.0',
        'vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} 0.0',
        'vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="weights_offloaded"} 1.0',
        'vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="discard_all"} 0.0',
      ].join('\n'),
      { workCount: 1_070, isAsleep: true },
    ],
    [
      'vLLM awake',
      ['awake', 'weights_offloaded', 'discard_all']
        .map(
          (state, i) =>
            `vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="${state}"} ${i === 0 ? 1 : 0}.0`,
        )
        .join('\n'),
      { isAsleep: false },
    ],
    [
      'vLLM before v1',
      'vllm:num_requests_running 3\nvllm:gpu_cache_usage_perc 0.5\n',
      { runningCount: 3, kvUsageRatio: 0.5 },
    ],
    [
      'SGLang, ranks that repeat each other',
      ['0', '1']
        .flatMap((dp) =>
          ['0', '1'].map((tp) => `sglang:num_running_reqs{dp_rank="${dp}",tp_rank="${tp}"} ${4 + Number(dp)}`),
        )
        .join('\n') +
        '\nsglang:num_queue_reqs{dp_rank="0"} 2.0\nsglang:token_usage{dp_rank="0"} 0.3\nsglang:token_usage{dp_rank="1"} 0.7',
      { runningCount: 9, waitingCount: 2, kvUsageRatio: 0.7 },
    ],
    [
      'SGLang with its memory and its retractions',
      'sglang:max_total_num_tokens{tp_rank="0"} 400000\nsglang:max_total_num_tokens{tp_rank="1"} 400000\n' +
        'sglang:num_retracted_requests_total{tp_rank="0"} 2\nsglang:num_retracted_reqs{tp_rank="0"} 9\n',
      { preemptionCount: 2, kvTokensMax: 400_000 },
    ],
    ['SGLang before its memory is set up', 'sglang:max_total_num_tokens 0\n', {}],
    ['SGLang with underscores', 'sglang_num_running_reqs{model_name="m"} 1 1712345678000\n', { runningCount: 1 }],
    [
      'llama.cpp',
      'llamacpp:requests_processing 2\r\nllamacpp:requests_deferred 5\r\n',
      { runningCount: 2, waitingCount: 5 },
    ],
    ['TGI', 'tgi_batch_current_size 4\ntgi_queue_size 7\n', { runningCount: 4, waitingCount: 7 }],
    [
      'Triton with TensorRT-LLM',
      `${['waiting 3', 'context 1', 'scheduled 4', 'max 512']
        .map((line) => line.split(' '))
        .map(([kind, value]) => `nv_trt_llm_request_metrics{model="t",request_type="${kind}",version="1"} ${value}`)
        .join('\n')}\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="t"} 0.4\n`,
      { runningCount: 4, waitingCount: 3, kvUsageRatio: 0.4 },
    ],
    [
      'TensorRT-LLM with its memory',
      ['max 100', 'free 60', 'used 40', 'tokens_per 64']
        .map((line) => line.split(' '))
        .map(([kind, value]) => `nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="${kind}",model="t"} ${value}`)
        .join('\n'),
      { kvTokensMax: 6_400 },
    ],
    [
      'Triton alone',
      'nv_inference_pending_request_count{model="a",version="1"} 2\nnv_inference_pending_request_count{model="b",version="1"} 1\n',
      { waitingCount: 3 },
    ],
    [
      'an engine whose numbers cannot be',
      'vllm:num_requests_running 1e9\nvllm:num_requests_waiting -1\nvllm:kv_cache_usage_perc 5\nsglang:max_total_num_tokens 1e300\n',
      { waitingCount: 0 },
    ],
    [
      'an engine that has one block, and rounds',
      'vllm:kv_cache_usage_perc 1.0004\nvllm:cache_config_info{block_size="16",num_gpu_blocks="1"} 1\n',
      { kvUsageRatio: 1 },
    ],
    ['nobody', 'go_goroutines 7\n', {}],
    ['a broken page', 'vllm:num_requests_running{engine="0"} NaN\nvllm:num_requests_waiting', {}],
  ])('are read off the page of %s', (_, page, wanted) => expect(readEngineGauges(HEAD + page)).toEqual(wanted))
})
