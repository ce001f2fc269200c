"""The error of a language model's logits, here and by llama.cpp, against float64 on the same file.

``python -m benchmarks llm_error FOLDER MODEL.gguf`` asks both for the logits after each of some
tokens; FOLDER has node-llama-cpp, as ``python -m benchmarks llm`` installs it.  Of llama.cpp's
probabilities the logarithms are taken, so that a constant of each row is left out in all three.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "llm"))  # a decoder in float64


def of_peer(folder, path, tokens):
    """Return llama.cpp's logarithms of probabilities (tokens, vocabulary)."""
    found = folder.resolve() / "probabilities.json"
    command = ["node", str(HERE / "llm_error.mjs"), str(path), json.dumps(tokens), str(found)]
    subprocess.run(command, cwd=folder, check=True)
    rows = json.loads(found.read_text())
    made = np.full((len(rows), max(map(len, rows))), np.nan)
    for row, pairs in zip(made, rows, strict=True):
        for token, probability in pairs:
            row[token] = np.log(max(probability, 1e-45))
    return made


def centred(rows):
    """Return rows without their means."""
    return rows - rows.mean(-1, keepdims=True)


def main():
    """Print the root mean square of both errors."""
    from decoder import logits
    from test_character_model import all_logits, compiled, exact

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where node-llama-cpp is kept")
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=40)
    given = parser.parse_args()
    path = given.model.resolve()
    config, weights = exact(path)
    drawn = np.random.default_rng(1).integers(3, config.vocabulary, given.tokens)
    tokens = [int(t) for t in drawn]
    want = centred(logits(config, weights, np.array(tokens)))
    best = np.sort(want, -1)
    print(f"spread {want.std():.2f}, median lead {np.median(best[:, -1] - best[:, -2]):.2f}")
    own = all_logits(compiled(path, all_logits=True, rows=64), tokens)
    for name, rows in (("here", own), ("llama.cpp", of_peer(given.folder, path, tokens))):
        error = centred(rows) - want
        print(f"{name}: {np.sqrt((error * error).mean()):.4f}")


if __name__ == "__main__":
    main()
