"""Tokens in a second of language models, beside llama.cpp on the same files.

``python -m benchmarks llm FOLDER`` writes random Llamas of 168 million parameters as GGUF (Q4_0 and
Q8_0) into FOLDER, installs node-llama-cpp there, and lets both read a prompt and continue it
greedily, in turns.  With one thread the processor's time counts, which other programs disturb
less; with more, the time on the wall.  The tokens that both make are compared: they agree as long
as the likeliest token leads by more than the rounding of the data to int8.
"""

import argparse
import json
import os
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np

PEER = Path(__file__).with_name("llm_peer.mjs")


def write_model(path, kind, d=1024, layers=8, ff=2816, vocabulary=32000, heads=16, context=4096):
    """Write a random Llama with the package gguf."""
    import gguf

    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(d)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(ff)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(d // heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(vocabulary)
    names = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    names += [f"\u2581t{i}" for i in range(vocabulary - len(names))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([name.encode() for name in names])
    writer.add_token_scores([-float(i) for i in range(vocabulary)])
    writer.add_token_types(([2, 3, 3] + [6] * 256 + [1] * vocabulary)[:vocabulary])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    def matrix(name, rows, columns):
        values = rng.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns)
        quantised = gguf.quants.quantize(values.astype(np.float32), kind)
        writer.add_tensor(name, quantised, raw_dtype=kind)

    matrix("token_embd.weight", vocabulary, d)
    for i in range(layers):
        at = f"blk.{i}."
        writer.add_tensor(at + "attn_norm.weight", np.ones(d, np.float32))
        writer.add_tensor(at + "ffn_norm.weight", np.ones(d, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"{at}{name}.weight", d, d)
        matrix(at + "ffn_gate.weight", ff, d)
        matrix(at + "ffn_up.weight", ff, d)
        matrix(at + "ffn_down.weight", d, ff)
    writer.add_tensor("output_norm.weight", np.ones(d, np.float32))
    matrix("output.weight", vocabulary, d)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Peer:
    """llama.cpp in a process of its own."""

    def __init__(self, folder, model, threads, context):
        self.process = subprocess.Popen(
            ["node", str(PEER), str(model), str(threads), str(context)],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        json.loads(self.process.stdout.readline())

    def run(self, tokens, decode):
        request = {"tokens": tokens, "decode": decode}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compile_to(folder, path, context, rows):
    """Compile a model and keep it in `folder`."""
    from slipway import llm

    source = llm.Source.read(path)
    library, description = llm.compile_model(source, context=context, rows=rows)
    llm.save(folder, library, description, None)


class Own:
    """The same with slipway: compiled by another process, as a device has it."""

    def __init__(self, path, context, rows):
        from slipway import llm

        kept = path.with_suffix(".compiled")
        process = get_context("spawn").Process(target=compile_to, args=(kept, path, context, rows))
        process.start()
        process.join()
        self.model = llm.LanguageModel.open(kept)

    def run(self, tokens, decode):
        self.model.reset()
        start = clock()
        self.model.feed(tokens[:-1])
        prompt = since(start, len(tokens) - 1)
        start = clock()
        made = list(self.model.generate(tokens, decode, stop=()))
        step = since(start, len(made))
        status = Path("/proc/self/status").read_text()
        memory = int(status.partition("VmRSS:")[2].split()[0]) * 1024
        return {"prompt": prompt, "step": step, "made": made, "memory": memory}


def clock():
    return {"wall": time.perf_counter(), "processor": time.process_time()}


def since(start, count):
    now = clock()
    return {key: (now[key] - start[key]) / count for key in now}


def read_bandwidth(threads):
    """Return the bytes that so many threads read in a second: sums of a large array."""
    values = np.ones((threads, 1 << 26), np.int64)
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            start = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, values))
            best = min(best, time.perf_counter() - start)
    return values.nbytes / best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where models and node-llama-cpp are kept")
    parser.add_argument("--formats", nargs="*", default=["q4_0", "q8_0"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompts", type=int, nargs="*", default=[128])
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.environ["SLIPWAY_NUM_THREADS"] = str(given.threads)
    given.folder.mkdir(parents=True, exist_ok=True)
    if not (given.folder / "node_modules" / "node-llama-cpp").is_dir():
        command = ["npm", "install", "--ignore-scripts", "node-llama-cpp"]
        subprocess.run(command, cwd=given.folder, check=True)
    rate = read_bandwidth(given.threads)
    print(f"{given.threads} threads read {rate / 1e9:.1f} GB/s; load {os.getloadavg()[0]:.0f}")
    kind = "processor" if given.threads == 1 else "wall"
    results = []
    for name in given.formats:
        path = given.folder / f"random_{name}.gguf"
        if not path.exists():
            import gguf

            write_model(path, gguf.GGMLQuantizationType[name.upper()])
        results += compare_alone(given, name, path, kind)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


def compare(given, name, path, kind):
    """Print and return a line for each length of prompt."""
    peer = Peer(given.folder, path, given.threads, given.context)
    own = Own(path, given.context, min(512, max(given.prompts)))
    weights = path.stat().st_size
    lines = []
    for length in given.prompts:
        tokens = [int(t) for t in np.random.default_rng(1).integers(300, 30000, length + 1)]
        rounds = []
        for number in range(given.rounds + 1):
            both = [own, peer] if number % 2 else [peer, own]
            found = {type(one).__name__: one.run(tokens, given.decode) for one in both}
            if number:  # the first warms both up
                rounds.append(found)
        line = {"format": name, "prompt": length, "threads": given.threads, "clock": kind}
        for phase in ("prompt", "step"):
            for who in ("Own", "Peer"):
                each = [r[who][phase][kind] for r in rounds]
                line[f"{phase} {who}"] = 1 / median(each)
                line[f"{phase} {who} best"] = 1 / min(each)
            ratios = [r["Peer"][phase][kind] / r["Own"][phase][kind] for r in rounds]
            line[f"{phase} ratio"] = median(ratios)
        same = 0
        made = [rounds[0][who]["made"] for who in ("Own", "Peer")]
        while same < given.decode and made[0][same] == made[1][same]:
            same += 1
        line["same tokens"] = same
        line["memory"] = [rounds[-1][who]["memory"] for who in ("Own", "Peer")]
        lines.append(line)
        print(
            f"{name} prompt {length}: {line['prompt Own']:.0f} tokens/s, llama.cpp "
            f"{line['prompt Peer']:.0f}, ratio {line['prompt ratio']:.2f}; decode "
            f"{line['step Own']:.1f} ({weights * line['step Own'] / 1e9:.1f} GB/s), llama.cpp "
            f"{line['step Peer']:.1f}, ratio {line['step ratio']:.2f}; best "
            f"{line['prompt Own best']:.0f} {line['prompt Peer best']:.0f} "
            f"{line['step Own best']:.1f} {line['step Peer best']:.1f}; {same} of {given.decode} "
            f"tokens the same; memory {line['memory'][0] >> 20} and {line['memory'][1] >> 20} MiB",
            flush=True,
        )
    peer.close()
    return lines


def compare_alone(given, name, path, kind):
    """Do so in a process of its own, so that no model of before counts as memory."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(compare, given, name, path, kind).result()
