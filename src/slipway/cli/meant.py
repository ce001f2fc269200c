"""What a word that is no command may mean: what others call a command, or a file without one."""

from __future__ import annotations

from pathlib import Path

# Words of other tools, and the commands that do what these do there.
_WORDS = {
    "compile": (
        "build", "convert", "export", "optimize", "optimise", "codegen", "make", "simplify",
        "trtexec",
    ),
    "run": ("predict", "infer", "inference", "execute", "exec"),
    "profile": (
        "benchmark", "bench", "perf", "time", "timing", "latency", "perf-test", "benchmark-model",
        "onnxruntime-perf-test",
    ),
    "check": ("info", "inspect", "analyze", "analyse", "summary", "survey", "list-ops", "support"),
    "validate": ("eval", "evaluate", "accuracy", "test", "verify"),
    "compare": ("diff",),
    "bisect": ("debug",),
    "tune": ("autotune", "search"),
    "micro create": (
        "init", "new", "project", "generate", "firmware", "generate-cc-arrays", "xxd",
    ),
    "micro flash": ("flash", "upload", "program"),
    "device add": ("deploy", "install", "ssh", "setup"),
    "farm up": ("lab", "cluster"),
    "fit --all-boards MODEL": ("boards", "list-boards"),
    "targets": ("devices", "list-targets", "list-devices", "hardware", "cpus"),
    "serve MODEL.gguf": ("llm", "openai"),
    "rpc-server": ("server", "start", "start-server"),
    "rpc-tracker": ("tracker",),
    "rpc-query": ("query", "status", "ps"),
    "demo": ("example", "quickstart", "tutorial", "hello"),
}  # fmt: skip
_COMMANDS = {word: command for command, words in _WORDS.items() for word in words}
_MODELS = (".onnx", ".tflite", ".pt2")
_ARTIFACTS = (".tar", ".so")


def advice(word: str) -> str:
    """Return what to write in the place of a word that is no command; "" where that is unknown."""
    ending = Path(word).suffix.lower()
    if ending in _MODELS:
        return f"a command stands before a model: `slipway check {word}`, compile, profile"
    if ending in _ARTIFACTS:
        return f"a command stands before an artifact: `slipway run {word}`, profile, size"
    if word == "tvmc":
        return "its command line is `python -m slipway.driver.tvmc`"
    command = _COMMANDS.get(word.lower().replace("_", "-"))
    return f"that is `slipway {command}` here" if command else ""


def words_meant(args: list[str]) -> list[str]:
    """Return the command line in which the words `help` and `version` are the options."""
    if args[:1] == ["help"]:
        return [*args[1:], "--help"]
    return ["--version"] if args == ["version"] else args
