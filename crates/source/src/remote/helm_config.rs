//! The chart repositories that `helm repo add` wrote down.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::remote::{Access, AccessTable};

/// Names, addresses and credentials of chart repositories.
#[derive(Clone, Debug, Default)]
pub(crate) struct HelmRepositories {
    entries: Vec<(String, String, Access)>,
}

impl HelmRepositories {
    /// Reads `repositories.yaml` from where the environment says that Helm has it; nothing if there is
    /// no such file or it cannot be read.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = config_file(variable).and_then(|path| std::fs::read_to_string(path).ok());
        text.map(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let value = tiphys_yaml::from_yaml(text).unwrap_or_default();
        let list = value.get("repositories").and_then(Value::as_array);
        Self { entries: list.into_iter().flatten().filter_map(read_entry).collect() }
    }

    /// The address of a repository by its name.
    pub(crate) fn address(&self, name: &str) -> Option<&str> {
        self.entries.iter().find(|(known, ..)| known == name).map(|(_, url, _)| url.as_str())
    }

    /// Adds what the repositories want to be told.
    pub(crate) fn add_access(&self, table: &mut AccessTable) {
        for (_, url, access) in &self.entries {
            table.insert(url, access.clone());
        }
    }
}

fn config_file(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let config = || {
        let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
        Some(folder.join("helm"))
    };
    set("HELM_REPOSITORY_CONFIG").or_else(|| {
        let folder = set("HELM_CONFIG_HOME").or_else(config)?;
        Some(folder.join("repositories.yaml"))
    })
}

fn read_entry(entry: &Value) -> Option<(String, String, Access)> {
    let text = |key| entry.get(key).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned);
    let is_set = |key| entry.get(key).and_then(Value::as_bool).unwrap_or_default();
    let pem = |key| text(key).and_then(|path| std::fs::read_to_string(Path::new(&path)).ok());
    let access = Access {
        username: text("username"),
        password: text("password"),
        ca_pem: pem("caFile"),
        client_certificate_pem: pem("certFile"),
        client_key_pem: pem("keyFile"),
        insecure_skip_verify: is_set("insecure_skip_tls_verify"),
        pass_credentials_all: is_set("pass_credentials_all"),
        ..Access::default()
    };
    Some((text("name")?, text("url")?, access))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_credentials_are_read() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("repositories.yaml");
        let text = "repositories:\n- name: team\n  url: https://charts.example.com\n  username: u\n  password: p\n  pass_credentials_all: true\n- {name: broken}\n";
        std::fs::write(&path, text).expect("can be written");
        let home = folder.path().to_str().expect("is text").to_owned();
        let read = HelmRepositories::read(|name| (name == "HELM_CONFIG_HOME").then(|| home.clone()));
        assert_eq!(read.address("team"), Some("https://charts.example.com"));
        assert_eq!(read.address("broken"), None);
        let mut table = AccessTable::default();
        read.add_access(&mut table);
        let access = table.lookup("https://charts.example.com/index.yaml");
        assert_eq!((access.username.as_deref(), access.password.as_deref()), (Some("u"), Some("p")));
        assert!(access.pass_credentials_all);
    }
}
