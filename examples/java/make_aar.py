"""Pack the Java class and its native half as an Android library (.aar), without Gradle.

    python make_aar.py --ndk $ANDROID_NDK_HOME -o slipway.aar
    python make_aar.py --library arm64-v8a=libslipway_jni.so -o slipway.aar

The NDK compiles for each ABI (Android's C library has its headers nowhere else); libraries that
were compiled elsewhere are taken with ``--library``.  A JDK's javac makes classes.jar.  An app
names the file in its dependencies: ``implementation(files("libs/slipway.aar"))``.
"""

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
NAME = "libslipway_jni.so"
# By ABI: the NDK's name of the target, and the machine of an ELF file.
ABIS = {
    "arm64-v8a": ("aarch64-linux-android", 183),
    "armeabi-v7a": ("armv7a-linux-androideabi", 40),
    "x86_64": ("x86_64-linux-android", 62),
}
MIN_SDK = 24
# Android 15 loads libraries whose segments are aligned to pages of 16 KB.
FLAGS = ["-std=c11", "-O2", "-fPIC", "-shared", "-Wl,-z,max-page-size=16384"]
MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="slipway">
    <uses-sdk android:minSdkVersion="{min_sdk}" />
</manifest>
"""
# The native half finds the classes by their names.
KEEP = "-keep class slipway.** { *; }\n"
MOMENT = (1980, 1, 1, 0, 0, 0)  # of all files, so that equal inputs give equal bytes


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def compiler_of(ndk: Path) -> Path:
    """Return the NDK's clang."""
    found = sorted((ndk / "toolchains" / "llvm" / "prebuilt").glob("*/bin/clang"))
    if not found:
        sys.exit(f"{ndk} is no Android NDK: it has no toolchains/llvm/prebuilt/*/bin/clang")
    return found[0]


def compiled(ndk: Path, abi: str, min_sdk: int, sources: Path, out: Path) -> Path:
    """Compile the native half for one ABI into the folder `out`."""
    library = out / f"{abi}-{NAME}"
    target = f"--target={ABIS[abi][0]}{min_sdk}"
    files = [str(HERE / "slipway_jni.c"), str(sources / "slipway.c")]
    words = [str(compiler_of(ndk)), target, *FLAGS, f"-I{sources}", *files, "-ldl", "-lm"]
    run([*words, "-o", str(library)])
    return library


def check_library(abi: str, library: Path) -> None:
    """Stop with an error for a file that no process of this ABI loads."""
    try:
        head = library.read_bytes()[:20]
    except OSError as error:
        sys.exit(f"cannot read {library}: {error.strerror}")
    machine = int.from_bytes(head[18:20], "little")
    if head[:4] != b"\x7fELF" or machine != ABIS[abi][1]:
        found = f"for machine {machine}" if head[:4] == b"\x7fELF" else "no ELF file"
        sys.exit(f"{library} is {found}, and {abi} wants an ELF file for machine {ABIS[abi][1]}")


def written(entries: dict[str, bytes]) -> bytes:
    """Return a ZIP file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name, MOMENT), entries[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def classes(folder: Path) -> bytes:
    """Return classes.jar."""
    javac = shutil.which("javac")
    if javac is None:
        sys.exit("there is no javac: install a JDK (apt-get install default-jdk-headless)")
    sources = sorted(str(path) for path in (HERE / "slipway").glob("*.java"))
    run([javac, "--release", "8", "-Xlint:-options", "-d", str(folder), *sources])
    found = sorted(folder.rglob("*.class"))
    return written({str(path.relative_to(folder)): path.read_bytes() for path in found})


def make(libraries: dict[str, Path], min_sdk: int, out: Path, work: Path) -> None:
    """Write the .aar."""
    entries = {
        "AndroidManifest.xml": MANIFEST.format(min_sdk=min_sdk).encode(),
        "R.txt": b"",
        "proguard.txt": KEEP.encode(),
        "classes.jar": classes(work / "classes"),
    }
    for abi, library in libraries.items():
        check_library(abi, library)
        entries[f"jni/{abi}/{NAME}"] = library.read_bytes()
    out.write_bytes(written(entries))
    print(f"{out}: {', '.join(libraries)}, {out.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack an Android library.")
    parser.add_argument("--ndk", type=Path, help="folder of the Android NDK")
    parser.add_argument("--abi", action="append", choices=ABIS, help="all, if left out")
    parser.add_argument("--library", action="append", default=[], metavar="ABI=FILE")
    parser.add_argument("--min-sdk", type=int, default=MIN_SDK)
    parser.add_argument("-o", "--output", type=Path, default=Path("slipway.aar"))
    options = parser.parse_args()
    libraries = {}
    for given in options.library:
        abi, _, path = given.partition("=")
        if abi not in ABIS or not path:
            parser.error(f"--library takes ABI=FILE with one of {', '.join(ABIS)}, not {given!r}")
        libraries[abi] = Path(path)
    if options.ndk is None and not libraries:
        parser.error("give --ndk, the folder of an Android NDK, or --library ABI=FILE")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "classes").mkdir()
        if options.ndk is not None:
            run([sys.executable, "-m", "slipway", "runtime", "--amalgamation", str(work)])
            for abi in options.abi or ABIS:
                libraries[abi] = compiled(options.ndk, abi, options.min_sdk, work, work)
        make(libraries, options.min_sdk, options.output, work)


if __name__ == "__main__":
    main()
