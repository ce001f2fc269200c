"""What an option may mean that a command does not have: what other tools call it, or another way.

Each row is of words, of the option that a command must have for the row to be about it, or how its
name begins ("" for all commands), and of what to write instead. The first that fits counts.
"""

from __future__ import annotations

from collections.abc import Collection

_TVMC = (
    "cross-compiler-options", "desired-layout", "desired-layout-ops", "disable-pass",
    "disabled-pass", "early-stopping", "enable-autoscheduler", "log-estimated-latency",
    "min-repeat-ms", "mixed-precision", "pass-config", "print-pass-times", "target-host", "tuner",
)  # fmt: skip
_TVMC_KINDS = ("executor-", "runtime-", "target-", "usmp-", "workspace-pools")
_TVMC_COMMANDS = ("compile", "run", "tune")
_TARGET = (
    '--target says what it is compiled for: a board of `slipway targets`, or "llvm '
    '-mtriple=aarch64-linux-gnu -mcpu=cortex-a72" in quotes'
)
_ROWS: tuple[tuple[str, str, str], ...] = (
    ("mcu chip core device", "fit", "that is --board NAME"),
    ("all", "fit", "that is --all-boards"),
    ("t platform project-template", "micro create", "that is --template NAME"),
    ("user username", "device", "the user stands before the host: USER@HOST"),
    ("dtype type bits", "quantize", "it writes int8; --report tells each layer's error"),
    ("host ip address addr rpc-host", "compile",
     "a device is named when it runs: `slipway run MODEL.tar --rpc-host HOST`"),
    ("board target", "demo", "--device says the kind of processor that is emulated"),
    ("device serial tty com", "micro", "--port /dev/ttyACM0 is the board's"),
    ("password pass", "device", "ssh asks nothing: ssh-copy-id USER@HOST lets your key in"),
    ("n n-predict max-new-tokens max-length num-predict", "--max-tokens",
     "that is --max-tokens N"),
    ("c ctx ctx-size n-ctx context-length context-size max-model-len", "--context",
     "that is --context N"),
    ("fp16 f16 half float16 bf16 bfloat16 dtype", "--precision",
     "`--precision float16` computes in 16 bits"),
    ("int8 uint8 bits quant quantize quantise quantization", "",
     "`slipway quantize MODEL --calibration SAMPLES.npz` writes a model of integers"),
    ("batch batch-size bs", "--input-shapes",
     'the batch is a size of the inputs: --input-shapes "x:[4,3,224,224]", or --dim N=4 by an '
     "ONNX file's name for it"),
    ("dynamic dynamic-axes dynamic-shapes dynamic-batch", "--dim",
     "--dim N=1..8 leaves a size open, by an ONNX file's name for it"),
    ("shape shapes input-shape input-size input-dims", "--input-shapes",
     'shapes go by the input\'s name: --input-shapes "x:[1,3,224,224]"'),
    ("o out outfile output output-file", "--outputs", "--outputs FILE.npz takes them"),
    ("out outfile output-file output-dir output-path output-name outdir dst dest save html",
     "--output",
     "--output says the file"),
    ("board", "--target",
     "--target takes boards with Linux (`slipway targets`); of a microcontroller's, `slipway micro "
     "create MODEL DIR --board NAME` makes firmware"),
    ("temp t", "--temperature", "that is --temperature X"),
    ("t cpu mcpu arch march platform hardware triple mtriple mattr device chip soc abi backend",
     "--target", _TARGET),
    ("provider providers ep execution-provider gpu use-gpu cuda vulkan opencl metal",
     "--target", "--target opencl, vulkan or cuda is for a GPU"),
    ("provider providers ep execution-provider gpu use-gpu device", "--rpc-host",
     "an artifact runs on what it was compiled for: `slipway compile MODEL --target vulkan`"),
    ("opt optimize optimise optimization optimization-level olevel", "--opt-level",
     "--opt-level N, or -O N, is 3 if nothing is said"),
    ("q s silent", "", "that is --quiet"),
    ("v verbose debug log-level loglevel log", "",
     "progress is told unless --quiet is given, and SLIPWAY_DEBUG=1 in the environment shows "
     "tracebacks"),
    ("j jobs num-threads nthreads cores num-cores intra-op-num-threads", "--threads",
     "that is --threads N"),
    ("j jobs threads num-threads nthreads cores num-cores", "--output",
     "how many threads share the work is said when it runs: `slipway run --threads N`, or "
     "SLIPWAY_NUM_THREADS=N"),
    ("m model model-file model-path graph onnx tflite artifact f file", "",
     "the file has no option and stands behind the command's name"),
    ("iterations budget n-trials num-trials ntrials max-trials", "--trials", "that is --trials N"),
    ("runs num-runs iters iterations loops count n r times", "--number",
     "--number N runs make a measurement, of which there are --repeat N"),
    ("runs num-runs iters iterations loops count n r times", "--repeat", "that is --repeat N"),
    ("benchmark bench time timing", "--print-time", "that is --print-time"),
    ("csv xml yaml format", "--json", "--json prints all of it for other programs"),
    ("warmup warmup-runs w", "--repeat", "a run before those that count is made anyway"),
    ("rpc-tracker tracker-host tracker-url", "--tracker", "that is --tracker HOST:PORT"),
    ("tracker rpc-tracker rpc-host", "--host", "--host HOST and --port PORT are the tracker's"),
    ("host ip address addr remote server hostname", "--rpc-host", "that is --rpc-host HOST"),
    ("key device-key kind", "--rpc-key", "that is --rpc-key NAME, beside --tracker HOST:PORT"),
    ("port", "--rpc-port", "that is --rpc-port N"),
    ("x input input-file inputs-file input-data data", "--inputs",
     "--inputs FILE.npz holds an array for each input"),
    ("calibration-data samples calibration-dataset calib dataset data representative-dataset",
     "--calibration", "that is --calibration SAMPLES.npz"),
    ("data images labels samples inputs", "--dataset",
     "that is --dataset FILE.npz, with labels or not"),
    ("opset opset-version", "",
     "the opset is the file's own; onnx.version_converter writes it in another"),
    ("arena arena-size tensor-arena-size stack-size heap-size workspace-size", "",
     "no size is guessed: arena and stack are computed, and `slipway fit MODEL --board NAME` tells "
     "them"),
    ("project-option project-options define d", "--option",
     "that is --option NAME=VALUE, once for each"),
    ("count devices number n num replicas", "--virtual",
     "that is --virtual N of each of the --kinds"),
    ("threshold atol rtol tol", "--tolerance", "that is --tolerance SHARE of the largest value"),
    ("token password secret auth", "--token-file",
     "--token-file FILE, as everybody on a machine sees its command lines"),
    ("target arch cpu mcpu core", "--all-boards",
     "the question is about boards, --board NAME or --all-boards; `slipway check MODEL --target "
     "arm/cortex-m4` is about a core"),
    ("boards board microcontrollers mcu", "--json",
     "`slipway fit MODEL --all-boards` lists microcontrollers' boards"),
)  # fmt: skip


def option_advice(command: str, option: str, known: Collection[str]) -> str:
    """Return what to write in the place of an option; "" where that is unknown.

    `known` are the options of `command`, which has no program's name.
    """
    word = option.lstrip("-").lower().replace("_", "-")
    if word and f"--{word}" in known:
        return f"it is spelled --{word}"
    is_of_tvmc = word in _TVMC or (word.startswith(_TVMC_KINDS) and "-" in word)
    if is_of_tvmc and command in _TVMC_COMMANDS:
        return f"`python -m slipway.driver.tvmc {command}` has it, as tvmc does"
    for words, needed, told in _ROWS:
        is_of_it = needed in known if needed.startswith("-") else command.startswith(needed)
        if is_of_it and word in words.split():
            return told
    return ""


# Of a group of commands: the words that others have for those in it.
_WITHIN = {
    "farm": {
        "up": ("start", "create", "begin", "launch"),
        "down": ("stop", "end", "delete", "destroy", "kill"),
        "status": ("list", "ls", "ps", "show", "info"),
    },
    "device": {
        "list": ("ls", "show", "status", "devices"),
        "remove": ("rm", "delete", "del", "uninstall"),
        "add": ("connect", "register", "install", "new", "create"),
    },
    "micro": {
        "create": ("init", "new", "generate", "create-project", "project"),
        "build": ("make", "compile"),
        "flash": ("upload", "program", "write"),
        "run": ("monitor", "serial", "console", "exec", "start"),
    },
}  # fmt: skip
# What words behind a command are that takes none, or no more.
_LOOSE = {
    "farm up": "--virtual N says how many devices of each kind there are to be, --kinds which",
    "compile": "one model at a time; a target of several words stands in quotes",
    "check": "one model at a time; a target of several words stands in quotes",
    "run": "inputs are given by --inputs FILE.npz",
    "report": "`slipway compare A B` holds one against another",
    "profile": "`slipway compare A B` holds one against another",
}
_BOARDS = ("list", "ls", "boards", "list-boards")


def loose_advice(command: str) -> str:
    """Return what to write in the place of a word that a command does not take; "" if unknown."""
    return _LOOSE.get(command, "")


def command_advice(group: str, word: str) -> str:
    """Return the command of a group that a word means which is none in it; "" if unknown."""
    low = word.lower().replace("_", "-")
    if group == "micro" and low in _BOARDS:
        return "`slipway fit MODEL --all-boards` lists the boards, and what fits"
    for command, words in _WITHIN.get(group, {}).items():
        if low in words:
            return f"that is `slipway {group} {command}` here"
    return ""
