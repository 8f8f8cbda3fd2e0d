//! The workloads against this repository's duroxide.

mod adapter;
#[path = "../../workloads/bench.rs"]
mod bench;

fn main() -> std::process::ExitCode {
    bench::main()
}
