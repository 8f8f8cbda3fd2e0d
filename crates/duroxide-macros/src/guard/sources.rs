//! Paths that are known not to be deterministic, with their replacements.

const TIME: &str = "`ctx.schedule_timer` to wait and `ctx.utc_now` for the time";
const NOW: &str = "`ctx.utc_now`";
const TASK: &str =
    "`ctx.activity` for work, `ctx.child` for orchestration code, and `ctx.join` to wait for several,";
const RANDOM: &str = "`ctx.new_guid`, or an activity that returns the number,";
const GUID: &str = "`ctx.new_guid`";
const IO: &str = "an activity";

/// A module or crate: everything in it, except the named items.
struct Module {
    path: &'static [&'static str],
    except: &'static [&'static str],
    instead: &'static str,
}

const fn module(path: &'static [&'static str], instead: &'static str) -> Module {
    Module { path, except: &[], instead }
}

const MODULES: &[Module] = &[
    Module { path: &["tokio", "time"], except: &["Duration", "error"], instead: TIME },
    module(&["tokio", "spawn"], TASK),
    module(&["tokio", "task"], TASK),
    module(&["tokio", "fs"], IO),
    module(&["tokio", "net"], IO),
    module(&["tokio", "process"], IO),
    module(&["async_std", "task"], TASK),
    module(&["rayon"], IO),
    module(&["std", "thread", "sleep"], TIME),
    module(&["std", "thread"], TASK),
    module(&["std", "fs"], IO),
    Module { path: &["std", "env"], except: &["consts"], instead: IO },
    module(&["std", "net", "TcpStream"], IO),
    module(&["std", "net", "TcpListener"], IO),
    module(&["std", "net", "UdpSocket"], IO),
    module(&["std", "process", "Command"], IO),
    module(&["std", "process", "exit"], "`return Err(...)`"),
    module(&["std", "process", "abort"], "`return Err(...)`"),
    module(&["std", "process", "id"], IO),
    module(&["rand"], RANDOM),
    module(&["fastrand"], RANDOM),
    module(&["getrandom"], RANDOM),
    module(&["reqwest"], IO),
];

/// The last segments of a path, for names that are imported more often than written out. Only names that hardly mean anything
/// else.
const ENDINGS: &[(&[&str], &str)] = &[
    (&["SystemTime", "now"], NOW),
    (&["Instant", "now"], NOW),
    (&["Utc", "now"], NOW),
    (&["Local", "now"], NOW),
    (&["OffsetDateTime", "now_utc"], NOW),
    (&["OffsetDateTime", "now_local"], NOW),
    (&["Zoned", "now"], NOW),
    (&["time", "sleep"], TIME),
    (&["time", "sleep_until"], TIME),
    (&["time", "timeout"], TIME),
    (&["time", "interval"], TIME),
    (&["thread", "spawn"], TASK),
    (&["thread", "sleep"], TIME),
    (&["task", "spawn"], TASK),
    (&["task", "spawn_blocking"], TASK),
    (&["task", "spawn_local"], TASK),
    (&["JoinSet", "new"], TASK),
    (&["env", "var"], IO),
    (&["env", "vars"], IO),
    (&["env", "args"], IO),
    (&["env", "current_dir"], IO),
    (&["fs", "read"], IO),
    (&["fs", "read_to_string"], IO),
    (&["fs", "write"], IO),
    (&["File", "open"], IO),
    (&["File", "create"], IO),
    (&["TcpStream", "connect"], IO),
    (&["TcpListener", "bind"], IO),
    (&["UdpSocket", "bind"], IO),
    (&["process", "Command", "new"], IO),
    (&["thread_rng"], RANDOM),
    (&["Uuid", "new_v4"], GUID),
    (&["Uuid", "now_v1"], GUID),
    (&["Uuid", "now_v6"], GUID),
    (&["Uuid", "now_v7"], GUID),
];

/// The replacement of this path; `None` if the path is allowed.
pub(super) fn replacement(path: &[String]) -> Option<&'static str> {
    // Paths of one's own code are not the standard library's.
    if path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "self" | "super" | "Self" | "ctx"))
    {
        return None;
    }
    let module = MODULES.iter().find(|module| {
        // The name of a crate alone is more likely a variable.
        path.len() >= module.path.len().max(2)
            && path.iter().zip(module.path).all(|(segment, known)| segment == known)
    });
    if let Some(module) = module {
        let exempt = path.get(module.path.len()).is_some_and(|next| module.except.contains(&next.as_str()));
        return (!exempt).then_some(module.instead);
    }
    let ending = ENDINGS.iter().find(|(ending, _)| {
        path.len() >= ending.len() && path.iter().rev().zip(ending.iter().rev()).all(|(a, b)| a == b)
    });
    ending.map(|(_, instead)| *instead)
}
