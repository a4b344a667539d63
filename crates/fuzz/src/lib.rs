//! What reads untrusted input, as functions of bytes that hold for every input: nothing panics, and all ends.
//!
//! Two programs give them inputs: `cargo fuzz` by coverage (the folder `fuzz/`), and the binary of this crate
//! by mutation of the repository's own test inputs, which needs neither a nightly compiler nor a build of its
//! own.

mod input;
pub mod mutation;
pub mod runner;
pub mod seeds;
pub mod targets;

/// A reader of untrusted input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name on the command line: `yaml`.
    pub name: &'static str,
    /// Gives it an input. Panics if something is wrong.
    pub run: fn(&[u8]),
}

/// All of them.
pub const ALL: &[Target] = &[
    Target { name: "applicationset", run: targets::applicationset },
    Target { name: "archive", run: targets::archive },
    Target { name: "cel", run: targets::cel },
    Target { name: "cluster", run: targets::cluster },
    Target { name: "dump", run: targets::dump },
    Target { name: "glob", run: targets::glob },
    Target { name: "ignore", run: targets::ignore },
    Target { name: "kustomization", run: targets::kustomization },
    Target { name: "message", run: targets::message },
    Target { name: "patch", run: targets::patch },
    Target { name: "policy", run: targets::policy },
    Target { name: "repository", run: targets::repository },
    Target { name: "request", run: targets::request },
    Target { name: "schema", run: targets::schema },
    Target { name: "settings", run: targets::settings },
    Target { name: "template", run: targets::template },
    Target { name: "values", run: targets::values },
    Target { name: "yaml", run: targets::yaml },
];

/// The target of a name.
pub fn target(name: &str) -> Option<Target> {
    ALL.iter().copied().find(|target| target.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_program_for_cargo_fuzz() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
        for target in ALL {
            let program = std::fs::read_to_string(root.join(format!("targets/{}.rs", target.name))).unwrap();
            assert!(program.contains(&format!("targets::{}(bytes)", target.name)), "{program}");
            assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
        }
        assert_eq!(std::fs::read_dir(root.join("targets")).unwrap().count(), ALL.len());
    }
}
