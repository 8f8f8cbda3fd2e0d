//! Dependencies between the workspace's crates point inwards; the pure crates stay pure.
//!
//! ```text
//! core <- provider <- store ; store <- {sqlite, postgres, peek-lock, runtime} ; peek-lock <- fs ; runtime <- {conformance, testing} ; sqlite <- testing ; all <- duroxide <- ui <- cli
//! ```
//!
//! Only normal dependencies count: a crate's tests may depend on any crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde::Deserialize;

use crate::step::announce;

/// The allowed dependencies of each crate. A crate that is not listed is an error, so that a new one gets its line here.
const ALLOWED: &[(&str, &[&str])] = &[
    ("duroxide-core", &[]),
    ("duroxide-macros", &[]),
    ("duroxide-provider", &["duroxide-core"]),
    ("duroxide-store", &["duroxide-core", "duroxide-provider"]),
    ("duroxide-postgres", &["duroxide-core", "duroxide-provider", "duroxide-store"]),
    ("duroxide-sqlite", &["duroxide-core", "duroxide-provider", "duroxide-store"]),
    ("duroxide-peek-lock", &["duroxide-core", "duroxide-provider", "duroxide-store"]),
    ("duroxide-fs", &["duroxide-core", "duroxide-provider", "duroxide-store", "duroxide-peek-lock"]),
    ("duroxide-runtime", &["duroxide-core", "duroxide-provider", "duroxide-store"]),
    ("duroxide-conformance", &["duroxide-core", "duroxide-provider", "duroxide-store", "duroxide-runtime"]),
    (
        "duroxide-testing",
        &["duroxide-core", "duroxide-provider", "duroxide-store", "duroxide-runtime", "duroxide-sqlite"],
    ),
    (
        "duroxide",
        &[
            "duroxide-core",
            "duroxide-provider",
            "duroxide-store",
            "duroxide-sqlite",
            "duroxide-postgres",
            "duroxide-fs",
            "duroxide-macros",
            "duroxide-runtime",
            "duroxide-conformance",
            "duroxide-testing",
        ],
    ),
    ("duroxide-cli", &["duroxide", "duroxide-core", "duroxide-provider", "duroxide-ui"]),
    ("duroxide-ui", &["duroxide", "duroxide-core"]),
    ("browser", &["duroxide", "duroxide-ui"]),
    ("console-example", &[]),
    ("crash-and-resume-example", &[]),
    ("fault-vfs", &[]),
    ("postgres-server", &[]),
    ("opentelemetry-example", &["duroxide"]),
    ("prometheus-example", &[]),
    ("xtask", &["postgres-server"]),
];

/// Crates that know no clock, no randomness, no I/O and no async runtime, not even through a dependency.
const PURE: &[&str] = &["duroxide-core", "duroxide-provider"];

/// Dependencies that would make a crate impure.
const IMPURE: &[&str] = &[
    "tokio",
    "tokio-util",
    "async-std",
    "mio",
    "rusqlite",
    "libsqlite3-sys",
    "rand",
    "getrandom",
    "fastrand",
];

/// Dependencies that only a feature of `duroxide` may add: a library must not choose its program's logger.
const ONLY_BY_FEATURE: &[&str] = &["tracing-subscriber"];

/// Packages, and features of packages, that the README's first command must not compile.
const NOT_IN_FIRST_BUILD: &[&str] = &[
    "duroxide-conformance",
    "duroxide-postgres",
    "duroxide-testing",
    "duroxide-ui",
    "duroxide-provider/testing",
];

/// Asks cargo for the dependency graph and checks it.
pub(crate) fn check_workspace() -> Result<(), String> {
    announce("Dependency arrows");
    let graph = Graph::of_workspace()?;
    let mut violations = graph.violations();
    violations.extend(unasked(&default_tree()?));
    violations.extend(too_much(&first_build_tree()?));
    if violations.is_empty() {
        println!("    ok, {} crates", graph.members.len());
        return Ok(());
    }
    Err(format!("dependency arrows (see ARCHITECTURE.md)\n        {}", violations.join("\n        ")))
}

/// The output of `cargo tree` for a program that adds `duroxide` with its default features: a package per line.
fn default_tree() -> Result<String, String> {
    cargo_tree(&["--package", "duroxide", "--edges", "normal"])
}

/// The output of `cargo tree` for the default members, with the features that cargo gives to their examples: a package per
/// line, its features behind a bar.
fn first_build_tree() -> Result<String, String> {
    // Cargo selects the default members for the workspace's own manifest, in any working directory.
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    cargo_tree(&["--manifest-path", workspace, "--edges", "normal,build,dev", "--format", "{p} |{f}"])
}

fn cargo_tree(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("cargo")
        .args(["tree", "--prefix", "none"])
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run `cargo tree`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo tree` failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn unasked(tree: &str) -> Vec<String> {
    let packages: BTreeSet<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let found = ONLY_BY_FEATURE.iter().filter(|name| packages.contains(*name));
    found.map(|name| format!("duroxide must not reach {name} by default")).collect()
}

fn too_much(tree: &str) -> Vec<String> {
    let mut compiled = BTreeSet::new();
    for line in tree.lines() {
        let (package, features) = line.trim_end_matches(" (*)").split_once('|').unwrap_or((line, ""));
        let Some(name) = package.split_whitespace().next() else { continue };
        compiled.insert(name.to_owned());
        compiled.extend(features.split(',').map(|feature| format!("{name}/{feature}")));
    }
    let found = NOT_IN_FIRST_BUILD.iter().filter(|name| compiled.contains(**name));
    found
        .map(|name| format!("the default members, and so the first example, must not compile {name}"))
        .collect()
}

/// The normal dependencies of every package, by name.
#[derive(Debug, Default)]
struct Graph {
    members: BTreeSet<String>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn of_workspace() -> Result<Self, String> {
        let output = Command::new("cargo")
            .args(["metadata", "--format-version", "1", "--all-features"])
            .output()
            .map_err(|error| format!("cannot run `cargo metadata`: {error}"))?;
        if !output.status.success() {
            return Err(format!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let metadata = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`cargo metadata` printed something else than JSON: {error}"))?;
        Ok(Self::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        let names: BTreeMap<&str, &str> =
            metadata.packages.iter().map(|package| (package.id.as_str(), package.name.as_str())).collect();
        let name = |id: &String| names.get(id.as_str()).map(|name| (*name).to_owned());

        let mut graph = Self::default();
        graph.members.extend(metadata.workspace_members.iter().filter_map(name));
        for node in &metadata.resolve.nodes {
            let Some(package) = name(&node.id) else { continue };
            let normal = node.deps.iter().filter(|dep| dep.is_normal()).filter_map(|dep| name(&dep.pkg));
            graph.edges.entry(package).or_default().extend(normal);
        }
        graph
    }

    fn violations(&self) -> Vec<String> {
        let mut violations = Vec::new();
        for member in &self.members {
            match ALLOWED.iter().find(|(name, _)| name == member) {
                None => violations.push(format!("{member} has no place in the list of arrows")),
                Some((_, allowed)) => violations.extend(self.outward(member, allowed)),
            }
        }
        violations.extend(PURE.iter().flat_map(|name| self.impure(name)));
        violations
    }

    fn outward(&self, member: &str, allowed: &[&str]) -> Vec<String> {
        self.dependencies(member)
            .filter(|dep| self.members.contains(*dep) && !allowed.contains(dep))
            .map(|dep| format!("{member} must not depend on {dep}"))
            .collect()
    }

    fn impure(&self, name: &str) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut open = vec![name];
        while let Some(package) = open.pop() {
            open.extend(self.dependencies(package).filter(|dep| seen.insert(*dep)));
        }
        let found = seen.into_iter().filter(|dep| IMPURE.contains(dep));
        found.map(|dep| format!("{name} is pure and must not reach {dep}")).collect()
    }

    fn dependencies(&self, package: &str) -> impl Iterator<Item = &str> {
        self.edges.get(package).into_iter().flatten().map(String::as_str)
    }
}

/// The part of `cargo metadata` that is read here.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

impl Dependency {
    /// Cargo writes the kind of a normal dependency as null.
    fn is_normal(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.is_none())
    }
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_its_arrows() {
        assert_eq!(Graph::of_workspace().unwrap().violations(), Vec::<String>::new());
    }

    #[test]
    fn a_program_gets_no_logger_that_it_did_not_ask_for() {
        let tree = default_tree().unwrap();
        assert!(tree.lines().any(|line| line.starts_with("tracing v")), "{tree}");
        assert_eq!(unasked(&tree), Vec::<String>::new());
        let found = unasked("tracing v0.1.0\ntracing-subscriber v0.3.0 (*)");
        assert_eq!(found, ["duroxide must not reach tracing-subscriber by default"]);
    }

    #[test]
    fn the_first_example_compiles_no_needless_crate() {
        let tree = first_build_tree().unwrap();
        assert!(tree.lines().any(|line| line.starts_with("crash-and-resume-example v")), "{tree}");
        assert_eq!(too_much(&tree), Vec::<String>::new());
        let found = too_much("duroxide-ui v0.5.0 (/a b) |\nduroxide-provider v0.5.0 |layers,testing (*)");
        let names: Vec<_> = found.iter().filter_map(|line| line.split(' ').next_back()).collect();
        assert_eq!(names, ["duroxide-ui", "duroxide-provider/testing"]);
    }

    #[test]
    fn an_arrow_outwards_is_found() {
        let graph = graph(&["duroxide-core", "duroxide-store"], &[("duroxide-core", "duroxide-store")]);
        assert_eq!(graph.violations(), ["duroxide-core must not depend on duroxide-store"]);
    }

    #[test]
    fn impurity_is_found_behind_a_dependency() {
        let graph =
            graph(&["duroxide-provider"], &[("duroxide-provider", "innocent"), ("innocent", "tokio")]);
        assert_eq!(graph.violations(), ["duroxide-provider is pure and must not reach tokio"]);
    }

    #[test]
    fn a_new_crate_must_get_its_place() {
        let graph = graph(&["duroxide-novelty"], &[]);
        assert_eq!(graph.violations(), ["duroxide-novelty has no place in the list of arrows"]);
    }

    #[test]
    fn dependencies_of_tests_do_not_count() {
        let metadata = serde_json::json!({
            "packages": [{"id": "1", "name": "duroxide-core"}, {"id": "2", "name": "tokio"}],
            "workspace_members": ["1"],
            "resolve": {"nodes": [
                {"id": "1", "deps": [{"pkg": "2", "dep_kinds": [{"kind": "dev"}]}]},
            ]},
        });
        let metadata = serde_json::from_value(metadata).unwrap();
        assert_eq!(Graph::from_metadata(&metadata).violations(), Vec::<String>::new());
    }

    fn graph(members: &[&str], edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        graph.members.extend(members.iter().map(|name| (*name).to_owned()));
        for (from, to) in edges {
            graph.edges.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    }
}
