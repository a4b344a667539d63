//! Which Kubernetes the server is.

use std::{fmt, str::FromStr};

use tiphys_value::{Value, json};

/// The minor version of the tables in `tiphys-schema`.
const NEWEST: u16 = 36;
/// The oldest minor version that can be asked for.
const OLDEST: u16 = 30;

/// A Kubernetes minor version that the server can be: 1.30 to 1.36.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion(u16);

/// The newest version.
impl Default for KubernetesVersion {
    fn default() -> Self {
        Self(NEWEST)
    }
}

/// `1.36`.
impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// Reads `1.34`, `v1.34` or `1.34.2`; the patch version does not count.
impl FromStr for KubernetesVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || {
            format!("{text:?} is no Kubernetes version known here; choose one from 1.{OLDEST} to 1.{NEWEST}")
        };
        let plain = text.strip_prefix('v').unwrap_or(text);
        let mut parts = plain.split('.');
        let minor = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("1"), Some(minor), patch, None) if patch.is_none_or(|p| p.parse::<u16>().is_ok()) => {
                minor.parse().map_err(|_| fail())?
            }
            _ => return Err(fail()),
        };
        if (OLDEST..=NEWEST).contains(&minor) { Ok(Self(minor)) } else { Err(fail()) }
    }
}

impl KubernetesVersion {
    /// The minor version's number.
    pub fn minor(self) -> u16 {
        self.0
    }

    /// What `/version` answers.
    pub(crate) fn info(self) -> Value {
        let minor = self.0.to_string();
        // The newest patch version that the tables were derived from; older minors name their first.
        let patch = if self.0 == NEWEST { 1 } else { 0 };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        json!({
            "major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.{patch}+tiphys"), "gitCommit": "",
            "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
            "platform": format!("{}/{arch}", std::env::consts::OS),
            "emulationMajor": "1", "emulationMinor": minor,
            "minCompatibilityMajor": "1", "minCompatibilityMinor": (self.0 - 1).to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for text in ["1.34", "v1.34", "1.34.7"] {
            assert_eq!(text.parse::<KubernetesVersion>().unwrap().minor(), 34);
        }
        for text in ["1.20", "2.0", "1", "", "1.x", "1.34.1.1", "1.99"] {
            assert!(text.parse::<KubernetesVersion>().is_err(), "{text}");
        }
    }
}
