"""Functions that a model may call: the notations of calls, and what requests say of them."""

import json

import pytest

pytest.importorskip("starlette")
pytest.importorskip("llguidance")

from served import TEMPLATE, Saying, chat, streamed

from slipway.llm.serving.server import application
from slipway.llm.serving.tools import CODER, HERMES, LLAMA, MISTRAL, CallReader, Tools, notation_of


def function(name, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties),
              "additionalProperties": False}  # fmt: skip
    return {"type": "function", "function": {"name": name, "parameters": schema}}


WEATHER = function(
    "weather", city={"type": "string", "maxLength": 11}, days={"type": "integer", "maximum": 9}
)
CLOCK = function("clock")
LISTED = [WEATHER, CLOCK]
PARIS = '{"name": "weather", "arguments": {"city": "<Paris> & ü", "days": 3}}'
CALL = f"<tool_call>\n{PARIS}\n</tool_call>"


def read(text, how, step, most=128):
    reader = CallReader(Tools(LISTED, how, (), most))
    parts = [reader.take(text[i : i + step]) for i in range(0, len(text), step)]
    parts.append(reader.finish())
    said = "".join(part[0] for part in parts)
    return said, [(c.name, json.loads(c.arguments)) for part in parts for c in part[1]]


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("how", "text", "said", "calls"),
    [
        (HERMES, "I look.\n" + CALL, "I look.\n", ["weather"]),
        (HERMES, f"{CALL}\n{CALL}", "\n", ["weather", "weather"]),
        (HERMES, "a < b <tool", "a < b <tool", []),
        (HERMES, "<tool_call>{broken}</tool_call>!", "<tool_call>{broken}</tool_call>!", []),
        (HERMES, "<tool_call>" + PARIS, "", ["weather"]),  # the end is a token that ends a text
        (HERMES, f"\n{PARIS}\n\n{PARIS}", "", ["weather", "weather"]),  # tags that are special
        (HERMES, '{"x": 1} </tool_call>', '{"x": 1} </tool_call>', []),
        (HERMES, '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
         '<tool_call>{"name": "rm", "arguments": {}}</tool_call>', []),
        (MISTRAL, f"[TOOL_CALLS][{PARIS}, {PARIS}]", "", ["weather", "weather"]),
        (MISTRAL, f"[{PARIS}]", "", ["weather"]), (MISTRAL, "[1, 2]", "[1, 2]", []),
        (MISTRAL, f"So: [TOOL_CALLS] [{PARIS}]", "So: ", ["weather"]),
        (LLAMA, PARIS.replace("arguments", "parameters"), "", ["weather"]),
        (LLAMA, f"  {PARIS}; {PARIS}", "", ["weather", "weather"]),
        (LLAMA, '{"name": "Ann"}', '{"name": "Ann"}', []),
        (LLAMA, "Well {", "Well {", []), (LLAMA, "", "", []), (LLAMA, " \n", " \n", []),
        (CODER, "<tool_call>\n<function=weather>\n<parameter=city>\n<Paris> & ü\n</parameter>\n"
         "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>", "", ["weather"]),
        (CODER, "<tool_call><function=rm></function></tool_call>",
         "<tool_call><function=rm></function></tool_call>", []),
    ],
)  # fmt: skip
def test_calls_are_read_in_whatever_pieces_they_come(how, text, said, calls, step):
    found, made = read(text, how, step)
    assert found == said
    assert made == [(name, {"city": "<Paris> & ü", "days": 3}) for name in calls]


def test_no_more_calls_than_may_be():
    step = 3
    assert len(read(f"{CALL}{CALL}", HERMES, step, most=1)[1]) == 1
    assert len(read(f"[{PARIS},{PARIS}]", MISTRAL, step, most=1)[1]) == 1


def test_a_template_says_how_calls_are_written():
    assert notation_of("... <tool_call> ...") is HERMES
    assert notation_of("<tool_call>\n<function=name>") is CODER
    assert notation_of("{{ '[TOOL_CALLS]' }}") is MISTRAL
    assert notation_of('{"name": n, "parameters": {}}') is LLAMA


def test_a_chat_calls_a_function():
    model = Saying("Let me see. " + CALL)
    status, body = chat(application(model), tools=LISTED)
    (choice,) = body["choices"]
    assert (status, choice["finish_reason"]) == (200, "tool_calls")
    message = choice["message"]
    assert message["content"] == "Let me see."
    (call,) = message["tool_calls"]
    assert call["type"] == "function"
    assert call["id"].startswith("call_")
    assert json.loads(call["function"]["arguments"]) == {"city": "<Paris> & ü", "days": 3}
    assert json.dumps(WEATHER) in model.prompts[0]  # as JSON, not as a page's
    messages = [
        {"role": "user", "content": "hi"}, message,
        {"role": "tool", "tool_call_id": call["id"], "content": "rain <1 mm"},
    ]  # fmt: skip
    assert chat(application(model), tools=LISTED, messages=messages)[0] == 200
    assert 'weather:{"city": "<Paris> & ü", "days": 3}' in model.prompts[1]
    assert "<|tool|>rain <1 mm" in model.prompts[1]


def test_calls_come_in_a_stream():
    model = Saying(f"So. {CALL}\n{CALL}")
    deltas, reason = streamed(application(model), tools=LISTED)
    assert reason == "tool_calls"
    assert "".join(d.get("content") or "" for d in deltas) == "So. "
    calls = [call for d in deltas for call in d.get("tool_calls", [])]
    assert [call["index"] for call in calls] == [0, 1]
    assert len({call["id"] for call in calls}) == 2
    deltas, _ = streamed(application(model), tools=LISTED, parallel_tool_calls=False)
    assert sum(len(d.get("tool_calls", [])) for d in deltas) == 1


@pytest.mark.parametrize("choice", ["required", {"type": "function",
                                                 "function": {"name": "weather"}}])  # fmt: skip
@pytest.mark.parametrize(
    ("begin", "tags"), [("<tool_call>", ()), ("<tool_call>", ("<tool_call>", "</tool_call>")),
                        ("[TOOL_CALLS]", ()), ("", ())],
)  # fmt: skip
def test_a_call_that_is_required_is_made(choice, begin, tags):
    template = TEMPLATE.replace("<tool_call>", begin).replace("</tool_call>", "")
    model = Saying("I would rather talk.", template, tags)
    for temperature in (0, 3):
        status, body = chat(
            application(model), tools=LISTED, tool_choice=choice, temperature=temperature, seed=1
        )
        assert status == 200
        (call,) = body["choices"][0]["message"]["tool_calls"]
        assert body["choices"][0]["finish_reason"] == "tool_calls"
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "weather":
            assert arguments["days"] <= 9
        else:
            assert choice == "required"


def test_functions_that_may_not_be_called():
    model = Saying(CALL)
    status, body = chat(application(model), tools=LISTED, tool_choice="none")
    message = body["choices"][0]["message"]
    assert (status, message["content"], "tool_calls" in message) == (200, CALL, False)
    assert "weather" not in model.prompts[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tools": {}}, "'tools' must be a list"), ({"tools": [5]}, "'tools' must be objects"),
        ({"tools": [{"type": "code_interpreter"}]}, "'tools' must be objects"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "the name 'a b'"),
        ({"tools": [{"type": "function", "function": {"name": "a", "parameters": 5}}]},
         "the parameters of 'a' must be"),
        ({"tools": LISTED, "tool_choice": "clock"}, "'tool_choice' is 'clock': it must be 'none'"),
        ({"tools": LISTED, "tool_choice": {"function": {"name": "rm"}}}, "weather, clock"),
        ({"tools": None, "tool_choice": "required"}, "there are no 'tools'"),
        ({"tools": LISTED, "parallel_tool_calls": 1.5}, "'parallel_tool_calls' is 1.5"),
        ({"tools": LISTED, "response_format": {"type": "json_object"}}, "beside 'tools'"),
        ({"tools": [function("f", x={"type": "quark"})], "tool_choice": "required"},
         "'tool_choice' cannot be kept to"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f",
          "arguments": "{"}}]}]}, "the arguments of the call of 'f'"),
        ({"messages": [{"role": "assistant", "tool_calls": 5}]}, "'tool_calls' of a message"),
    ],
)  # fmt: skip
def test_what_is_refused(change, words):
    model = Saying("x")
    status, body = chat(application(model), **change)
    assert status == 400
    assert words in body["error"]["message"]
    assert not model.prompts


def test_a_template_without_functions_is_said():
    status, body = chat(application(Saying("x", "{{ messages[0].content }}")), tools=LISTED)
    assert status == 400
    assert "'tools' are not served: the model's chat template" in body["error"]["message"]
    tags = TEMPLATE.replace("{...}", "<function=name>")
    status, body = chat(application(Saying("x", tags)), tools=LISTED, tool_choice="required")
    assert (status, "writes calls in tags" in body["error"]["message"]) == (400, True)
