"""What `slipway device add` puts on a machine, and the scripts that put it there and take it away.

Everything lies in one folder of the user's home, which is where ssh begins; beside it only what
starts it at boot: a unit of the user's systemd, or a line of the user's crontab.  The scripts are
one line of POSIX `sh` each, so that BusyBox and dash run them and `--dry-run` can show them.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

FOLDER = ".slipway-server"
SERVER = f"{FOLDER}/slipway-server"
START = f"{FOLDER}/start"
TOKEN = f"{FOLDER}/token.txt"
UNIT_NAME = "slipway-server.service"
UNITS = ".config/systemd/user"
UNIT = f"{UNITS}/{UNIT_NAME}"
CRON_MARK = "# slipway-server"

UNIT_TEXT = f"""\
# Written by `slipway device add`; `slipway device remove` takes it away.
[Unit]
Description=Slipway device server

[Service]
ExecStart=%h/{START}
Restart=always
RestartSec=5

[Install]
WantedBy=default.target
"""

# A number of a process is used again after its end: it must be the server's.
_IS_OURS = (
    f"pid=$(cat {FOLDER}/pid 2>/dev/null) && "
    'grep -q slipway-server "/proc/$pid/cmdline" 2>/dev/null'
)

# Each line has a mark: a shell's greeting may stand around them.
MARK = "slipway: "
LOOK = "; ".join(
    (
        f'echo "{MARK}system $(uname -s)"',
        f'echo "{MARK}machine $(uname -m)"',
        f'echo "{MARK}disk $(df -Pk . | tail -n 1)"',
        f'if [ -w . ]; then echo "{MARK}writable yes"; fi',
        # In a chroot systemctl agrees to everything and does nothing: what it shows counts.
        "if systemctl --user show-environment 2>/dev/null | grep -q =; then boot=systemd; "
        "elif command -v crontab >/dev/null 2>&1; then boot=cron; else boot=none; fi",
        f'echo "{MARK}boot $boot"',
        f'echo "{MARK}version $({SERVER} --version 2>/dev/null)"',
        f'sha256sum {SERVER} {START} {TOKEN} {UNIT} 2>/dev/null | sed "s/^/{MARK}sum /"',
        f'if {_IS_OURS}; then echo "{MARK}running yes"; fi',
        "true",
    )
)

FOLDER_MADE = f"umask 077 && mkdir -p {FOLDER}"
# The new server is tried before it takes the old one's place, which may be running.
SERVER_WRITTEN = (
    f"cat >{SERVER}.new && chmod 755 {SERVER}.new && {SERVER}.new --version && "
    f"mv {SERVER}.new {SERVER} || {{ rm -f {SERVER}.new; exit 1; }}"
)
TOKEN_WRITTEN = f"umask 077 && cat >{TOKEN}"
START_WRITTEN = f"cat >{START} && chmod 700 {START}"
UNIT_WRITTEN = f"mkdir -p {UNITS} && cat >{UNIT}"

# `kill -0` would find a process that has ended until somebody asks how, which is never where the
# first process of a container adopts it.
STOPPED = (
    f'if {_IS_OURS}; then kill "$pid"; for i in 1 2 3 4 5 6 7 8 9 10; do '
    f"if {_IS_OURS}; then sleep 0.5 2>/dev/null || sleep 1; fi; done; "
    f'kill -9 "$pid" 2>/dev/null; fi; rm -f {FOLDER}/pid'
)
UNIT_STARTED = (
    f"systemctl --user daemon-reload && systemctl --user enable {UNIT_NAME} && "
    f"systemctl --user restart {UNIT_NAME}"
)
# Without lingering a user's units start when the user logs in, not at boot.
LINGER = (
    'if [ -e "/var/lib/systemd/linger/$(id -un)" ]; then :; '
    f"elif loginctl enable-linger >/dev/null 2>&1; then : >{FOLDER}/linger; "
    f'else echo "{MARK}linger no"; fi'
)
# Read as a whole before it is written; `echo` would change backslashes in it.
_OTHER_LINES = f"rest=$(crontab -l 2>/dev/null | grep -v {shlex.quote(CRON_MARK)})"
_REST = 'if [ -n "$rest" ]; then printf "%s\\n" "$rest"; fi'
_CRON_LINE = f'@reboot "$HOME"/{START} >"$HOME"/{FOLDER}/log 2>&1 {CRON_MARK}'
CRON_WRITTEN = f"{_OTHER_LINES}; {{ {_REST}; echo {shlex.quote(_CRON_LINE)}; }} | crontab -"
STARTED = (
    f"nohup {START} >{FOLDER}/log 2>&1 </dev/null & sleep 1; "
    f"{_IS_OURS} || {{ cat {FOLDER}/log >&2; exit 1; }}"
)
LOG = (
    f"if [ -e {UNIT} ]; then journalctl --user -u {UNIT_NAME} -n 5 --no-pager -o cat; "
    f"else tail -n 5 {FOLDER}/log; fi 2>/dev/null; true"
)

# Each part finds out itself whether there is something to take away, and goes on when there is not.
UNIT_REMOVED = (
    f"if [ -e {UNIT} ]; then systemctl --user disable --now {UNIT_NAME}; rm -f {UNIT}; "
    f"systemctl --user daemon-reload; rmdir {UNITS}/default.target.wants {UNITS} .config/systemd "
    ".config 2>/dev/null; fi; true"
)
LINGER_REMOVED = f"if [ -e {FOLDER}/linger ]; then loginctl disable-linger; fi; true"
CRON_REMOVED = (
    f"if crontab -l 2>/dev/null | grep -q {shlex.quote(CRON_MARK)}; then {_OTHER_LINES}; "
    f'if [ -n "$rest" ]; then {{ {_REST}; }} | crontab -; else crontab -r; fi; fi; true'
)
FOLDER_REMOVED = f"rm -rf {FOLDER}"


@dataclass(frozen=True)
class Options:
    """How the server is started there."""

    key: str
    port: int
    tracker: str | None = None
    custom_address: str | None = None
    with_token: bool = True

    def start_script(self) -> str:
        """Return the script that runs the server, in its folder, for systemd, cron and hands."""
        arguments = ["--host", "0.0.0.0", "--port", str(self.port), "--port-end", str(self.port)]
        arguments += ["--key", self.key]
        if self.tracker is not None:
            arguments += ["--tracker", self.tracker]
        if self.custom_address is not None:
            arguments += ["--custom-addr", self.custom_address]
        if self.with_token:
            arguments += ["--token-file", "token.txt"]
        return (
            "#!/bin/sh\n"
            "# Written by `slipway device add`; `slipway device remove` takes it away.\n"
            'cd "$(dirname "$0")" || exit 1\n'
            "echo $$ >pid\n"
            f"exec ./slipway-server {shlex.join(arguments)}\n"
        )
