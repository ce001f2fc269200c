"""GGUF files: written byte by byte here, read, held against the package gguf, and damaged."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from decoder import logits, random_weights
from gguf_writer import llama_metadata, llama_tensors, write
from tests.llm.test_network import loaded

from slipway.errors import MissingPackageError, ModelError, SlipwayError
from slipway.llm.gguf_file import BLOCKS, UNREAD, GGUFFile
from slipway.llm.gguf_model import model_of, weights_of
from slipway.llm.gguf_rare import RARE
from slipway.llm.model import Source
from slipway.llm.tokenizer import Tokenizer, tokenizer_of_gguf
from slipway.llm.transformers_config import from_transformers
from slipway.relay.ops.nn.block_dense import random_rows
from slipway.relay.ops.packed.block_formats import FORMATS, decode, encode


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A Llama as a file, with weights of q8_0 and q4_0, and the numbers that these stand for."""
    config = from_transformers({
        "model_type": "llama", "vocab_size": 40, "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
    })  # fmt: skip
    weights = random_weights(config, np.random.default_rng(5))
    exact, blocks = dict(weights), {}
    for name, value in weights.items():
        if value.ndim == 2:
            form = "q4_0" if "mlp" in name else "q8_0"
            exact[name] = decode(form, encode(form, value))
            blocks[name] = form
    tensors = {}
    for (name, value), own in zip(llama_tensors(weights, config).items(), weights, strict=True):
        tensors[name] = (blocks[own], encode(blocks[own], value)) if own in blocks else value
    pieces = ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581ab", "c"]
    pieces += [f"x{i}" for i in range(31)]
    metadata = llama_metadata(config, pieces, [2, 3, 3] + [1] * 37)
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write(path, metadata, tensors)
    return path, exact


def test_the_package_gguf_reads_the_same(llama):
    gguf = pytest.importorskip("gguf")
    file = GGUFFile(llama[0])
    theirs = {t.name: t for t in gguf.GGUFReader(llama[0]).tensors}
    assert set(theirs) == set(file.tensors)
    for name, tensor in theirs.items():
        found = file.read(name)
        data = getattr(found, "data", found) if hasattr(found, "format") else found
        np.testing.assert_array_equal(np.asarray(data), np.asarray(tensor.data))


@pytest.mark.parametrize("name", [n for n in FORMATS if not n.startswith("u")])
def test_the_package_gguf_decodes_the_same(name):
    gguf = pytest.importorskip("gguf")
    rows = random_rows(np.random.default_rng(1), name, 7, 3)
    theirs = gguf.quants.dequantize(rows, gguf.GGMLQuantizationType[name.upper()])
    # the same numbers up to the order in which two factors and the minimum are rounded
    np.testing.assert_allclose(decode(name, rows), theirs, rtol=1e-6, atol=1e-6)


def test_the_package_gguf_has_the_same_formats():
    """Numbers, elements and bytes; what it has beside them is refused by name."""
    gguf = pytest.importorskip("gguf")
    for number, name in BLOCKS.items():
        theirs = gguf.GGMLQuantizationType(number)
        assert theirs.name == name.upper()
        assert gguf.GGML_QUANT_SIZES[theirs] == (FORMATS[name].size, FORMATS[name].bytes)
    others = {
        n.value: n.name for n in gguf.GGMLQuantizationType if n.name.startswith(("Q", "IQ", "TQ"))
    }
    rest = {number: name for number, name in others.items() if number not in BLOCKS}
    known = {**UNREAD, **{number: form.name for number, form in RARE.items()}}
    assert {number: known.get(number) for number in rest} == rest
    for number, form in RARE.items():
        sizes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(number)]
        assert sizes == (form.size, form.bytes) or form.name.startswith("Q8")


def _rare_rows(rng, form, rows):
    """Random bytes with scales that are small numbers."""
    made = rng.integers(0, 256, (rows, 2, form.bytes)).astype(np.uint8)
    scale = rng.uniform(0.01, 0.1, (rows, 2, 1))
    if form.name == "Q8_K":
        made[..., :4] = scale.astype("<f4").view(np.uint8)
    elif form.name == "IQ1_M":  # a scale in the high bits of four words at the end
        words = scale.astype("<f2").view("<u2")
        parts = made[..., 48:].view("<u2")
        parts[:] = parts & 0x0FFF | np.stack([(words[..., 0] >> 4 * i & 15) << 12
                                              for i in range(4)], -1)  # fmt: skip
    else:
        made[..., :2] = scale.astype("<f2").view(np.uint8)
    return made.reshape(rows, -1)


@pytest.mark.parametrize("number", RARE)
def test_rare_formats_become_eight_bits(number, tmp_path):
    """As the package gguf decodes them, to half a step of q8_0; Q8_1 and Q8_K it only writes."""
    gguf = pytest.importorskip("gguf")
    form = RARE[number]
    rows = _rare_rows(np.random.default_rng(7), form, 5)
    if form.name.startswith("Q8"):
        blocks = rows.reshape(5, 2, -1)
        scale = blocks[..., :2].copy().view("<f2") if number == 9 else blocks[..., :4].copy().view(
            "<f4"
        )  # fmt: skip
        want = blocks[..., 4 : 4 + form.size].view(np.int8) * scale.astype(np.float32)
        want = want.reshape(5, -1)
    else:
        want = gguf.quants.dequantize(rows, gguf.GGMLQuantizationType(number))
    path = tmp_path / "x.gguf"
    write(path, {}, {"w": (number, rows, (form.size, form.bytes))})
    found = GGUFFile(path).read("w")
    assert found.shape == want.shape
    largest = np.abs(want).reshape(5, -1, 32).max(-1).repeat(32, -1)
    error = np.abs(decode(found.format, found.data) - want)
    assert (error <= largest / 254 * 1.2 + 1e-7).all()


def test_tables_that_are_not_installed_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gguf", None)
    path = tmp_path / "x.gguf"
    write(path, {}, {"w": (16, np.zeros((2, 66), np.uint8), (256, 66))})
    with pytest.raises(MissingPackageError, match=r"'w' is of the type IQ2_XXS.*pip install gguf"):
        GGUFFile(path).read("w")


def test_a_model_of_blocks_is_near_its_exact_numbers(llama):
    path, exact = llama
    given = Source.read(path) if _has_tokenizers() else _without_tokens(path)
    model = loaded(given, rows=4)
    tokens = [1, 7, 8, 4, 9, 30]
    # The file has rows of query and key in another order, and turns neighbours; the exact weights
    # are in transformers' order.
    layers = tuple(replace(c, rope=replace(c.rope, interleaved=False)) for c in given.config.layers)
    halves = replace(given.config, layers=layers)
    want = logits(halves, exact, tokens)[-1]
    assert np.abs(model.feed(tokens) - want).max() < 0.03 * np.abs(want).max()


def _has_tokenizers():
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        return False
    return True


def _without_tokens(path):
    file = GGUFFile(path)
    for key in [k for k in file.metadata if k.startswith("tokenizer.ggml.tokens")]:
        del file.metadata[key]
    config, weights, _ = model_of(file)
    return Source("tiny", config, weights, None)


def test_pieces_are_joined_by_their_scores(llama):
    pytest.importorskip("tokenizers")
    tokenizer = tokenizer_of_gguf(GGUFFile(llama[0]).metadata)
    assert tokenizer.encode("ab c") == [1, 7, 3, 8]
    assert tokenizer.decode([1, 7, 3, 8]) == "ab c"
    assert "".join(tokenizer.pieces(iter([7, 3, 8, 6]))) == "ab cab"
    assert tokenizer.chat_text([{"role": "user", "content": "a"}]) == "User: a\nAssistant:"
    template = "{% for m in messages %}<s>{{ m['content'] }}</s>{% endfor %}"
    assert tokenizer.encode_chat([{"role": "user", "content": "ab"}], template)[:1] == [1]
    with pytest.raises(ModelError, match=r"needs a role and a content"):
        tokenizer.encode_chat([{"role": "user"}])
    with pytest.raises(ModelError, match=r"chat template failed"):
        tokenizer.chat_text([{"role": "user", "content": "a"}], "{% for %}")


def test_no_damage_raises_anything_else(llama, tmp_path):
    """Bytes of the head, where all counts are, exchanged; and files cut short."""
    whole = llama[0].read_bytes()
    rng = np.random.default_rng(0)
    messages = []
    path = tmp_path / "damaged.gguf"
    for trial in range(250):
        made = bytearray(whole)
        if trial % 5 == 0:
            made = made[: rng.integers(0, len(made))]
        else:
            for _ in range(rng.integers(1, 4)):
                made[rng.integers(0, 3000)] = rng.integers(0, 256)
        path.write_bytes(bytes(made))
        try:
            file = GGUFFile(path)
            config, weights, metadata = model_of(file)
            for name in file.tensors:
                file.read(name)
            assert config.heads
            assert weights.names
            if _has_tokenizers():
                tokenizer_of_gguf(metadata)
        except SlipwayError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert min(map(len, messages)) > 20


def test_what_is_wrong_is_said(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"ONNX" + bytes(60))
    with pytest.raises(ModelError, match=r"no GGUF file"):
        GGUFFile(path)
    with pytest.raises(ModelError, match=r"cannot be read"):
        GGUFFile(tmp_path / "absent.gguf")
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(ModelError, match=r"empty\.gguf is empty\. Download"):
        GGUFFile(tmp_path / "empty.gguf")
    with pytest.raises(ModelError, match=r"there is no file or folder"):
        Source.read(tmp_path / "absent.gguf")
    write(path, {"general.architecture": "llama4"}, {})
    with pytest.raises(ModelError, match=r"no architecture 'llama4'.*It knows: llama"):
        model_of(GGUFFile(path))
    write(path, {"general.architecture": "llama", "llama.embedding_length": 8,
                 "llama.attention.head_count": 2}, {})  # fmt: skip
    with pytest.raises(ModelError, match=r"no tensor 'token_embd.weight'"):
        model_of(GGUFFile(path))


def test_positions_of_longer_contexts(tmp_path):
    """As transformers' files say them: YaRN, and lists of divisors for short and long contexts."""
    sizes = {
        "vocab_size": 8, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64,
    }  # fmt: skip
    short, long = np.float32([1, 1.5, 2, 4]), np.float32([2, 3, 4, 8])
    scale = {"factor": 4.0, "original_max_position_embeddings": 16}
    path, prefix = tmp_path / "x.gguf", "rope.scaling."
    embedding = {"token_embd.weight": np.zeros((8, 16), np.float32)}
    lists = {"rope_factors_short.weight": short, "rope_factors_long.weight": long}
    for kind, tensors, amplitude in (
        ("yarn", {}, 1.0),
        ("longrope", lists, (1 + np.log(4) / np.log(16)) ** 0.5),
    ):
        found = {"rope_type": kind, "short_factor": short.tolist(), "long_factor": long.tolist()}
        want = from_transformers(
            {"model_type": "phi3", **sizes, "rope_scaling": {**found, **scale}}
        )
        metadata = {
            key.replace("llama.", "phi3."): value
            for key, value in llama_metadata(want, ["a"] * 8, [1] * 8).items()
        }
        metadata |= {"general.architecture": "phi3"}
        metadata |= {f"phi3.{prefix}{key}": value for key, value in (
            ("type", kind), ("factor", 4.0), ("original_context_length", 16),
            ("attn_factor", float(amplitude)),
        )}  # fmt: skip
        write(path, metadata, {**embedding, **tensors})
        made = model_of(GGUFFile(path))[0].layers[0].rope
        wanted = want.layers[0].rope
        assert (made.original, made.long_factors) == (wanted.original, wanted.long_factors)
        np.testing.assert_allclose(made.factors, wanted.factors)
        np.testing.assert_allclose(made.amplitude, wanted.amplitude, rtol=1e-6)
    write(path, metadata, {**embedding, "rope_factors_short.weight": short[:3]})
    with pytest.raises(ModelError, match="3 divisors of frequencies for 4 pairs of a head"):
        model_of(GGUFFile(path))


@pytest.mark.parametrize(
    ("given", "factors"),
    [({"scaling.type": "linear", "scaling.factor": 0.0}, ()), ({"scaling.factor": 4.0}, (4.0,)),
     ({"scaling.type": "yarn", "scaling.factor": 0.0}, (1.0,) * 4), ({"scale_linear": 2.0}, (2.0,)),
     ({"scaling.type": "none", "scaling.factor": 4.0}, ())],
)  # fmt: skip
def test_positions_are_scaled_as_llama_cpp_reads_them(given, factors, tmp_path):
    metadata = {"general.architecture": "llama", "llama.embedding_length": 16,
                "llama.attention.head_count": 2, "llama.feed_forward_length": 8,
                "llama.block_count": 1, "llama.context_length": 64}  # fmt: skip
    metadata |= {f"llama.rope.{key}": value for key, value in given.items()}
    write(tmp_path / "x.gguf", metadata, {"token_embd.weight": np.zeros((8, 16), np.float32)})
    made = model_of(GGUFFile(tmp_path / "x.gguf"))[0].layers[0].rope.factors
    np.testing.assert_allclose(made, factors)


@pytest.mark.parametrize(("layers", "scale"), [(42, None), (46, 144**-0.5)])
def test_the_widest_gemma_2_scales_scores_by_its_own_number(layers, scale, tmp_path):
    """4608 columns for 32 heads of 128: its file does not say that scores go by 144."""
    metadata = {"general.architecture": "gemma2", "gemma2.embedding_length": 4608,
                "gemma2.attention.head_count": 32, "gemma2.attention.key_length": 128,
                "gemma2.feed_forward_length": 8, "gemma2.block_count": layers}  # fmt: skip
    write(tmp_path / "x.gguf", metadata, {"token_embd.weight": np.zeros((8, 4608), np.float32)})
    config = model_of(GGUFFile(tmp_path / "x.gguf"))[0]
    assert config.attention_scale == scale
    assert (config.attention_softcap, config.logit_softcap) == (50.0, 30.0)


def test_a_tensor_that_nothing_computes_with_is_named(llama, tmp_path):
    """Whatever it is called: it is not left out in silence."""
    file = GGUFFile(llama[0])
    tensors = {name: np.ones((8, 32), np.float32) for name in file.tensors}
    write(tmp_path / "x.gguf", {}, {**tensors, "blk.0.attn_sinks.weight": np.zeros(4, np.float32)})
    names = weights_of(GGUFFile(tmp_path / "x.gguf"), model_of(file)[0]).names
    assert "model.layers.0.attn_sinks.weight" in names


@pytest.mark.skipif(not _has_tokenizers(), reason="needs the library tokenizers")
def test_a_tokenizer_says_what_it_cannot_take():
    """The library raises bare Exceptions, and an OverflowError for a number that is no token's."""
    from tokenizers import Tokenizer as Inner
    from tokenizers.models import BPE

    tokenizer = Tokenizer(Inner(BPE({"a": 0, "b": 1}, [], unk_token="x")))
    assert tokenizer.encode("ab") == [0, 1]
    with pytest.raises(ModelError, match=r"cannot take 'a z'.*Unk token"):
        tokenizer.encode("a z")
    for tokens in ([-1], [2**40], ["x"]):
        with pytest.raises(ModelError, match="there are no such tokens"):
            tokenizer.decode(tokens)
