//! The workloads against the published duroxide on `duroxide-pg`, which are used through their public API only.

mod adapter;
#[path = "../../workloads/bench.rs"]
mod bench;

fn main() -> std::process::ExitCode {
    bench::main()
}
