//! What this process uses, and other processes of this program.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// What the process had used by some moment, as the kernel counts it.
#[derive(Debug)]
pub struct Usage {
    at: Instant,
    cpu: Duration,
    switches: u64,
}

impl Usage {
    /// Sums over all threads; the kernel counts their time in nanoseconds.
    pub fn now() -> Result<Self, String> {
        let mut usage = Self { at: Instant::now(), cpu: Duration::ZERO, switches: 0 };
        let threads = fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
        for thread in threads.flatten() {
            // A thread that ends meanwhile has no more to say.
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or(0));
            usage.cpu += Duration::from_nanos(numbers.next().unwrap_or(0));
            usage.switches += numbers.nth(1).unwrap_or(0);
        }
        Ok(usage)
    }

    /// The share of one core that was used since `earlier`, in percent.
    pub fn cpu_percent_since(&self, earlier: &Self) -> f64 {
        let cpu = self.cpu.saturating_sub(earlier.cpu);
        cpu.as_secs_f64() / self.at.duration_since(earlier.at).as_secs_f64() * 100.0
    }

    /// How often per second a thread was put on a core since `earlier`.
    pub fn wake_ups_per_s_since(&self, earlier: &Self) -> f64 {
        let switches = self.switches.saturating_sub(earlier.switches);
        switches as f64 / self.at.duration_since(earlier.at).as_secs_f64()
    }
}

/// The memory that is in use, in MiB.
pub fn resident_mib() -> Result<f64, String> {
    let text = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kib = line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
    Ok(kib.ok_or("VmRSS is not a number")? / 1024.0)
}

/// Another process of this program. It is killed when this is dropped.
#[derive(Debug)]
pub struct Sibling(Child);

impl Sibling {
    /// Starts it and waits until it says that it is ready.
    pub fn start(args: &[String]) -> Result<Self, String> {
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut sibling = Self(child.map_err(|error| format!("cannot start a second process: {error}"))?);
        let stdout = sibling.0.stdout.take().ok_or("no pipe from the second process")?;
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line == READY {
                return Ok(sibling);
            }
        }
        Err("the second process ended before it was ready".to_owned())
    }

    /// Kills it as `kill -9` does.
    pub fn kill(mut self) -> Result<(), String> {
        self.0.kill().and_then(|()| self.0.wait()).map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Sibling {
    fn drop(&mut self) {
        // It is gone already, or nothing more can be done about it.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The line that a second process prints when it is ready.
pub const READY: &str = "ready";
