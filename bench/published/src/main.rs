//! The workloads against the published duroxide, which is used through its public API only.

mod adapter;
#[path = "../../workloads/bench.rs"]
mod bench;

fn main() -> std::process::ExitCode {
    bench::main()
}
