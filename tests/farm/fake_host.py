"""A machine that ssh reaches: a program ``ssh`` that runs commands in a folder here, as its home.

What the machine has (systemctl, crontab, another processor) are programs of a folder that stands
first in its PATH; those that it has not are hidden by ones that fail.
"""

import os
import sys
from pathlib import Path

FAKE = """\
#!{python}
import os, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print(words[-1], file=log)
while words and words[0].startswith("-"):
    option = words.pop(0)
    if option == "-G":
        print("hostname 127.0.0.1")
        sys.exit(0)
    if option == "--":
        break
    words.pop(0)
refusal = open({refusal!r}).read() if os.path.exists({refusal!r}) else ""
if refusal:
    print(refusal, file=sys.stderr)
    sys.exit(255)
os.chdir({home!r})
environment = {{"HOME": {home!r}, "PATH": {programs!r} + ":/usr/bin:/bin"}}
os.execve("/bin/sh", ["sh", "-c", *words[1:]], environment)
"""

# A list of lines in a file; as the real one, it writes nothing when its input ends early.
CRONTAB = """\
#!/bin/sh
case $1 in
-l) cat {file} ;;
-r) rm {file} ;;
-) cat >{file} ;;
esac
"""

# The user's manager: it keeps the one process of the one unit.
SYSTEMCTL = """\
#!/bin/sh
echo "$@" >>{log}
stop() {{ kill $(cat {pid}) 2>/dev/null; rm -f {pid}; }}
unit=.config/systemd/user/slipway-server.service
wants=.config/systemd/user/default.target.wants
case "$2 $3" in
"show-environment "*) echo HOME=$HOME ;;
"enable "*) mkdir -p $wants && ln -sf ../slipway-server.service $wants/ ;;
"restart "*)
  stop
  "$(sed -n "s#^ExecStart=%h#$HOME#p" $unit)" </dev/null >/dev/null 2>&1 &
  echo $! >{pid}
  sleep 0.3 ;;
"disable "*) rm -f $wants/slipway-server.service; stop ;;
esac
exit 0
"""

# Enough of a server for what does not connect to it.
SERVER = """\
#!/bin/sh
[ "$1" = --version ] && echo "slipway-server {version}" && exit 0
exec tail -f slipway-server
"""


class FakeHost:
    """The machine: its home, its programs, and what was asked of it."""

    def __init__(self, folder: Path) -> None:
        """Make it under `folder`: bare, with neither systemd nor cron."""
        self.home = folder / "its home"
        self.programs = folder / "programs"
        self.here = folder / "here"
        self.log = folder / "asked.log"
        self._refusal = folder / "refusal"
        self.table = folder / "crontab.txt"
        self.systemd_log = folder / "systemctl.log"
        for path in (self.home, self.programs, self.here):
            path.mkdir()
        values = {
            "python": sys.executable, "log": str(self.log), "home": str(self.home),
            "programs": str(self.programs), "refusal": str(self._refusal),
        }  # fmt: skip
        _program(self.here / "ssh", FAKE.format(**values))
        for name in ("systemctl", "loginctl"):
            self.program(name, "#!/bin/sh\nexit 1\n")

    def program(self, name: str, text: str) -> None:
        """Give it a program."""
        _program(self.programs / name, text)

    def has_cron(self) -> None:
        """Give it a crontab."""
        self.program("crontab", CRONTAB.format(file=self.table))

    def has_systemd(self) -> None:
        """Give it a manager of the user's units."""
        pid = self.systemd_log.with_suffix(".pid")
        self.program("systemctl", SYSTEMCTL.format(log=self.systemd_log, pid=pid))

    def is_a(self, system: str, machine: str) -> None:
        """Let it be another machine."""
        script = f'#!/bin/sh\ncase "$1" in -s) echo {system} ;; *) echo {machine} ;; esac\n'
        self.program("uname", script)

    def refuses(self, words: str) -> None:
        """Let ssh say that it cannot get in."""
        self._refusal.write_text(words)

    def left(self) -> list[str]:
        """Return the files of its home."""
        return sorted(p.relative_to(self.home).as_posix() for p in self.home.rglob("*"))

    def server(self, version: str) -> Path:
        """Return a program that says it is a server."""
        return _program(self.here / "server", SERVER.format(version=version))

    def is_running(self) -> bool:
        """Whether its server runs."""
        try:
            pid = int((self.home / ".slipway-server/pid").read_text())
            os.kill(pid, 0)
        except (OSError, ValueError):
            return False
        return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2][:3]


def _program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
