"""Stand-ins for models behind the server, and requests to it without a network."""

import asyncio
import json
from functools import cached_property
from types import SimpleNamespace

import numpy as np
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Inner

from slipway.llm.forms import FormMaker
from slipway.llm.sampling import Sampler
from slipway.llm.tokenizer import Tokenizer

END, COUNT = 256, 260  # the token that ends a text; logits, more than there are tokens

TEMPLATE = (
    "{% if tools %}Write <tool_call>{...}</tool_call>.{% for t in tools %}{{ t | tojson }}\n"
    "{% endfor %}{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}:{{ c.function.arguments | tojson }}"
    "{% endfor %}\n{% endfor %}<|assistant|>"
)


def letters(tags=()):
    """Return a tokenizer of bytes, of a token that ends a text, and of some tags."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Inner(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken("<eos>", special=True)])
    inner.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in tags])
    return Tokenizer(inner)


class Saying:
    """A model that says a text; what of it does not fit a form, or follows, is drawn."""

    def __init__(self, text, template=TEMPLATE, tags=()):
        self.tokenizer, self.room = letters(tags), 1 << 20
        self.description = SimpleNamespace(
            name="saying", context=1 << 16, vocabulary=COUNT, chat_template=template, pooling=""
        )
        self.says, self.prompts = self.encode(text), []

    @cached_property
    def forms(self):
        return FormMaker(self.tokenizer, COUNT, [END])

    def encode(self, text):
        return self.tokenizer.encode(text)

    def chat_tokens(self, messages, tools=None):
        return self.tokenizer.encode_chat(messages, self.description.chat_template, tools)

    def generate(self, tokens, most, how, seen=None, form=None):
        self.prompts.append(self.tokenizer.decode(tokens))
        sampler, random = Sampler(how, form), np.random.default_rng(0)
        for number in range(most):
            logits = random.standard_normal(COUNT)
            if number < len(self.says):
                logits[self.says[number]] = 99
            elif form is None:
                return
            token = sampler.pick(logits)
            if token == END:
                return
            yield token
            if form is not None and form.is_complete:
                return


def ask(app, path, body):
    """Return the status and the text of one request."""
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": [],
        "query_string": b"", "scheme": "http", "server": ("here", 80), "root_path": "",
        "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
    }  # fmt: skip
    sent = []
    waiting = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive():
        if not waiting:
            await asyncio.sleep(3600)
        return waiting.pop()

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:]).decode()


def chat(app, **body):
    """Return the status of a chat and its body."""
    body.setdefault("messages", [{"role": "user", "content": "hi"}])
    status, text = ask(app, "/v1/chat/completions", body)
    return status, json.loads(text)


def streamed(app, **body):
    """Return the deltas of a streamed chat, and how it ended."""
    body.setdefault("messages", [{"role": "user", "content": "hi"}])
    _, text = ask(app, "/v1/chat/completions", {**body, "stream": True})
    *events, end, _ = text.split("\n\n")
    assert end == "data: [DONE]"
    choices = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events]
    return [choice["delta"] for choice in choices], choices[-1]["finish_reason"]
