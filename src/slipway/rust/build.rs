//! Finds the C runtime, or compiles it.
//!
//! `SLIPWAY_LIB_DIR` names the folder of `libslipway_runtime.so` (`slipway runtime --libs` prints
//! it); a process that Python is in must use that one, so that both share one table of functions.
//! Without it the sources, beside this crate or in `SLIPWAY_CRT`, are compiled into the program with
//! `$CC` (or `cc`) and `$AR` (or `ar`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDERS: [&str; 8] = [
    "src",
    "posix",
    "posix/devices",
    "posix/devices/drivers",
    "posix/devices/drivers/metal",
    "posix/devices/drivers/opencl",
    "posix/rpc",
    "classic",
];

fn main() {
    for name in ["SLIPWAY_LIB_DIR", "SLIPWAY_CRT", "CC", "AR"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    if env::var_os("CARGO_FEATURE_STD").is_none() {
        return; // what a firmware calls, it links itself
    }
    if let Ok(folder) = env::var("SLIPWAY_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder);
        println!("cargo:rustc-link-lib=dylib=slipway_runtime");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder);
        return;
    }
    compile();
}

fn compile() {
    let crt = env::var("SLIPWAY_CRT")
        .map(PathBuf::from)
        .unwrap_or_else(|_| {
            Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../crt")
        });
    if !crt.join("src").is_dir() {
        panic!(
            "slipway-rt needs the C runtime, and {} is not there: set SLIPWAY_CRT to the folder \
             that `python -c 'import slipway; print(*slipway.libinfo.find_crt_include_path())'` \
             prints, or SLIPWAY_LIB_DIR to that of libslipway_runtime.so.",
            crt.display()
        );
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let mut objects = Vec::new();
    for folder in FOLDERS {
        let mut sources: Vec<PathBuf> = std::fs::read_dir(crt.join(folder))
            .expect("a folder of the runtime")
            .map(|entry| entry.expect("a file of the runtime").path())
            .filter(|path| path.extension().map_or(false, |end| end == "c"))
            .collect();
        sources.sort();
        for source in sources {
            println!("cargo:rerun-if-changed={}", source.display());
            let name = source.file_stem().expect("a C file").to_string_lossy();
            let object = out.join(format!("{}_{}.o", folder.replace('/', "_"), name));
            let mut command = Command::new(&compiler);
            command.args([
                "-std=c11",
                "-O2",
                "-fPIC",
                "-pthread",
                "-D_GNU_SOURCE=",
                "-c",
            ]);
            command
                .arg("-I")
                .arg(crt.join("include"))
                .arg(&source)
                .arg("-o")
                .arg(&object);
            run(
                command,
                "a C compiler; Debian: apt-get install gcc, or set CC",
            );
            objects.push(object);
        }
    }
    let archive = out.join("libslipway_runtime.a");
    let _ = std::fs::remove_file(&archive);
    let mut command = Command::new(env::var("AR").unwrap_or_else(|_| "ar".to_string()));
    command.arg("crs").arg(&archive).args(&objects);
    run(
        command,
        "an archiver; Debian: apt-get install binutils, or set AR",
    );
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=slipway_runtime");
    println!("cargo:rustc-link-lib=dylib=pthread");
    println!("cargo:rustc-link-lib=dylib=dl");
}

fn run(mut command: Command, needed: &str) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{:?} failed with {}", command, status),
        Err(error) => panic!(
            "{:?} did not start ({}): slipway-rt needs {}",
            command, error, needed
        ),
    }
}
