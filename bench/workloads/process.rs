//! The resources that this process uses, and other processes of this program.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The CPU time of each thread of the process at some moment, as the kernel counts it.
#[derive(Debug)]
pub struct Usage {
    at: Instant,
    threads: BTreeMap<OsString, ThreadUsage>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadUsage {
    cpu: Duration,
    switches: u64,
}

impl Usage {
    /// The kernel counts the time of threads in nanoseconds, that of the process only in hundredths of a second.
    pub fn now() -> Result<Self, String> {
        let at = Instant::now();
        let threads = fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
        let threads = threads.flatten().filter_map(|thread| {
            // A thread that ends meanwhile is left out.
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((thread.file_name(), ThreadUsage::parse(&text)))
        });
        Ok(Self { at, threads: threads.collect() })
    }

    /// The share of one core that was used since `earlier`, in percent.
    pub fn cpu_percent_since(&self, earlier: &Self) -> f64 {
        let cpu: Duration = self.since(earlier).map(|used| used.cpu).sum();
        cpu.as_secs_f64() / self.at.duration_since(earlier.at).as_secs_f64() * 100.0
    }

    /// How often per second a thread was put on a core since `earlier`.
    pub fn wake_ups_per_s_since(&self, earlier: &Self) -> f64 {
        let switches: u64 = self.since(earlier).map(|used| used.switches).sum();
        switches as f64 / self.at.duration_since(earlier.at).as_secs_f64()
    }

    /// The CPU time of each thread since then. The time of a thread that has ended is lost, so that sums over all
    /// threads would not do.
    fn since(&self, earlier: &Self) -> impl Iterator<Item = ThreadUsage> {
        self.threads.iter().map(|(thread, now)| {
            let before = earlier.threads.get(thread).copied().unwrap_or_default();
            ThreadUsage {
                cpu: now.cpu.saturating_sub(before.cpu),
                switches: now.switches.saturating_sub(before.switches),
            }
        })
    }
}

impl ThreadUsage {
    fn parse(schedstat: &str) -> Self {
        let mut numbers = schedstat.split_whitespace().map(|number| number.parse().unwrap_or(0));
        let cpu = Duration::from_nanos(numbers.next().unwrap_or(0));
        Self { cpu, switches: numbers.nth(1).unwrap_or(0) }
    }
}

/// The time that all cores of the machine had worked by some moment, for any process.
#[derive(Debug)]
pub struct MachineUsage {
    busy: u64,
    total: u64,
}

impl MachineUsage {
    pub fn now() -> Option<Self> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let line = text.lines().find(|line| line.starts_with("cpu "))?;
        let times: Vec<u64> = line.split_whitespace().skip(1).filter_map(|time| time.parse().ok()).collect();
        // User, nice, system, idle, waiting for the disk, interrupts, soft interrupts, stolen; guests are counted as users.
        let total = times.iter().take(8).sum();
        let idle: u64 = times.iter().skip(3).take(2).sum();
        Some(Self { busy: total - idle, total })
    }

    /// The share of all cores that was used since `earlier`, in percent.
    pub fn busy_percent_since(&self, earlier: &Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total).max(1);
        self.busy.saturating_sub(earlier.busy) as f64 / total as f64 * 100.0
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
        // It has ended already, or it cannot be killed.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The line that a second process prints when it is ready.
pub const READY: &str = "ready";
