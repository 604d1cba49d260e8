"""Load for Spillway, or any OpenAI-compatible server, from Locust.

    locust -f examples/locust/locustfile.py --headless -H http://127.0.0.1:8080 -u 20 -r 5 -t 60s

What differs from an ordinary locustfile:

- 429 and 503 are answers, not failures: the server protects the others. They are counted under the name "shed", so
  that their few milliseconds do not flatter the latencies of real answers, and the user comes back after Retry-After.
- Answers are streamed; the time to the first token is a row of its own.
"""

import json
import random
import time

import gevent
from locust import HttpUser, between, events, task

SHED = (429, 503)
# Nobody waits longer than this, whatever the server asks for.
RETRY_AFTER_S_MAX = 60.0

WORDS = (
    "water river stone light house garden summer winter morning evening letter story music paper window market "
    "bridge island forest mountain village doctor teacher friend city street station train ship engine machine"
).split()


@events.init_command_line_parser.add_listener
def add_arguments(parser):
    parser.add_argument("--model", env_var="SPILLWAY_MODEL", default="spill-large", help="Model to ask for")
    parser.add_argument(
        "--keys",
        env_var="SPILLWAY_KEYS",
        default="acme=sk-demo-acme,globex=sk-demo-globex,initech=sk-demo-initech",
        help="tenant=secret pairs, separated by commas; each user takes one",
    )
    parser.add_argument("--prompt-words", type=int, default=300, help="Mean length of a prompt, in words")
    parser.add_argument("--output-tokens", type=int, default=100, help="max_tokens of each request")


class ChatUser(HttpUser):
    """One person: asks, reads the answer as it comes, thinks, asks again."""

    wait_time = between(0.5, 2.0)

    def on_start(self):
        pairs = [pair.split("=", 1) for pair in self.environment.parsed_options.keys.split(",") if "=" in pair]
        self.tenant, self.secret = random.choice(pairs) if pairs else ("anybody", None)

    @task
    def chat(self):
        options = self.environment.parsed_options
        words = max(1, int(random.gauss(options.prompt_words, options.prompt_words / 3)))
        body = {
            "model": options.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": options.output_tokens,
            "messages": [{"role": "user", "content": " ".join(random.choices(WORDS, k=words))}],
        }
        headers = {"authorization": f"Bearer {self.secret}"} if self.secret else {}
        started = time.perf_counter()
        with self.client.post(
            "/v1/chat/completions",
            json=body,
            headers=headers,
            stream=True,
            catch_response=True,
            name=f"answer {self.tenant}",
        ) as response:
            if response.status_code in SHED:
                response.request_meta["name"] = f"shed {self.tenant}"
                response.success()
                pause = retry_after_s(response)
            else:
                pause = 0.0
                self.read(response, started)
        if pause > 0:
            gevent.sleep(pause)

    def read(self, response, started):
        if response.status_code != 200:
            response.failure(f"{response.status_code}: {response.text[:200]}")
            return
        is_whole = False
        has_token = False
        for line in response.iter_lines():
            if not line.startswith(b"data: "):
                continue
            data = line[6:]
            if data == b"[DONE]":
                is_whole = True
                break
            chunk = json.loads(data)
            error = chunk.get("error")
            if error:
                # It was let in and then lost its place: shed, only later.
                if error.get("code") in ("waited_too_long", "evicted"):
                    response.request_meta["name"] = f"shed {self.tenant}"
                    response.success()
                else:
                    response.failure(error.get("message", "error frame"))
                return
            if not has_token and any(choice.get("delta", {}).get("content") for choice in chunk.get("choices", [])):
                has_token = True
                self.environment.events.request.fire(
                    request_type="TTFT",
                    name=f"first token {self.tenant}",
                    response_time=(time.perf_counter() - started) * 1000,
                    response_length=0,
                    exception=None,
                    context={},
                )
        # The request's own clock stopped at the headers: the answer takes until here.
        response.request_meta["response_time"] = (time.perf_counter() - started) * 1000
        if is_whole:
            response.success()
        else:
            response.failure("the stream ended before [DONE]")


def retry_after_s(response):
    """`retry-after-ms` where there is one, else `retry-after` in seconds, else one second."""
    try:
        if "retry-after-ms" in response.headers:
            return min(RETRY_AFTER_S_MAX, float(response.headers["retry-after-ms"]) / 1000)
        return min(RETRY_AFTER_S_MAX, float(response.headers.get("retry-after", 1)))
    except ValueError:
        return 1.0


@events.quitting.add_listener
def sum_up(environment, **_):
    """One line at the end: how much was shed. Shedding alone leaves the exit code at 0."""
    entries = environment.stats.entries.values()
    shed = sum(entry.num_requests for entry in entries if entry.name.startswith("shed "))
    answers = sum(entry.num_requests - entry.num_failures for entry in entries if entry.name.startswith("answer "))
    failed = sum(entry.num_failures for entry in entries)
    print(f"{answers} answered, {shed} shed (429 or 503), {failed} failed", flush=True)
