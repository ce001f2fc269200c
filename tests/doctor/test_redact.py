"""What a bundle may not say: each kind of secret, and texts that look like one and are none."""

import pytest

from slipway.doctor.redact import Redactor, is_secret


def redactor(**environment):
    return Redactor(environment, home="/home/ada", user="ada", host="lovelace")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("--token 7hunter2 --device pi", "7hunter2"),
        ("--token=7hunter2", "7hunter2"),
        ("--admin-token 7hunter2", "7hunter2"),
        ('{"password": "7hunter2", "port": 1}', "7hunter2"),
        ("api_key: '7hunter2'", "7hunter2"),
        ("client_secret=7hunter2&scope=all", "7hunter2"),
        ("Authorization: Bearer 7hunter2.abc", "7hunter2"),
        ("Cookie: session=7hunter2", "7hunter2"),
        ("postgresql://ada:7hunter2@db.lab/tuning", "7hunter2"),
        ("https://7hunter2@github.com/lab/model", "7hunter2"),
        ("downloading with hf_AbCdEfGhIjKlMnOpQr now", "hf_AbCdEf"),
        ("ghp_abcdefghijklmnopqrst", "ghp_"),
        ("AKIAABCDEFGHIJKLMNOP", "AKIA"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "eyJzdWIi"),
        (f"device said {'0123456789abcdef' * 2}.", "0123456789abcdef"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE7h\n-----END RSA PRIVATE KEY-----\n", "MIIE7h"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE7h and the rest was cut", "MIIE7h"),
        ("written by ada.l@example.org", "example"),
        ("File /home/ada/models/x.onnx", "ada"),
        ("File /home/grace/models/x.onnx, /Users/alan/y", "grace"),
        ("File /Users/alan/y", "alan"),
        ("ada@lovelace: refused", "lovelace"),
        ("connecting to 93.184.216.34:9090", "93.184"),
        ("ssh pi@93.184.216.34", "93.184"),
    ],
)
def test_it_is_removed(text, secret):
    one = redactor()
    assert secret in text
    assert secret not in one.text(text)
    assert one.removed.total() > 0


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-cublas 12.4.127.1, llvmlite 0.50.0",
        "connecting to 192.168.1.7:9090 and 127.0.0.1:9190",
        f"sha256 {'0123456789abcdef' * 4}",
        "--token-file farm.token",
        "export SLIPWAY_RPC_TOKEN=... with the token that they were started with",
        "the token is missing; SLIPWAY_RPC_TOKEN is not set",
        "tokens per second 12.5, keys and values, a monkey, PWD",
        "cmsis/adaptive.c: in function adam_step",
        "nn.conv2d(%data, %weight, padding=[1, 1, 1, 1])",
    ],
)
def test_it_stays(text):
    assert redactor().text(text) == text


def test_what_a_secret_variable_holds_is_removed_wherever_it_stands():
    one = redactor(SLIPWAY_RPC_TOKEN="correct horse", MY_KEY="correct horse battery", X_TOKEN="1")
    text = one.text("refused 'correct horse battery' and correct horse; 1 try")
    assert text == "refused '[removed: MY_KEY]' and [removed: SLIPWAY_RPC_TOKEN]; 1 try"
    assert one.removed == {"value of MY_KEY": 1, "value of SLIPWAY_RPC_TOKEN": 1}


def test_a_variable_says_that_it_is_set_and_nothing_else():
    shown = redactor().variables({"A_TOKEN": "abc", "B_PASSWORD": "", "PATH": "/home/ada/bin:/bin"})
    assert shown == {"A_TOKEN": "[removed: 3 characters]", "B_PASSWORD": "", "PATH": "~/bin:/bin"}


def test_a_name_that_everybody_has_is_none():
    assert Redactor({}, home="/data", user="user", host="localhost").text(
        "user of localhost in /data/x, /database and /chroot/data"
    ) == "user of localhost in ~/x, /database and /chroot/data"  # fmt: skip


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True), ("AWS_SECRET_ACCESS_KEY", True), ("PGPASSWORD", True),
        ("OPENAI_API_KEY", True), ("DB_PASS", True), ("SSH_AUTH_SOCK", True),
        ("PATH", False), ("PWD", False), ("OLDPWD", False), ("KEYBOARD", False),
        ("SLIPWAY_CACHE", False), ("COMPASS", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name, secret):
    assert is_secret(name) is secret
