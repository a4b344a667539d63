//! Hosts of Git and of charts that do not answer for a while, by plan: what a rehearsal does to them.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;

use crate::{RepoId, SourceError};

/// Hosts that are away. Cheap to clone; all clones know the same ones.
#[derive(Clone, Debug, Default)]
pub struct Outages(Arc<RwLock<BTreeMap<String, usize>>>);

impl Outages {
    /// Takes a host away. Who takes it away twice has to bring it back twice.
    pub fn begin(&self, host: &str) {
        let mut hosts = self.0.write();
        *hosts.entry(host.to_lowercase()).or_default() += 1;
    }

    /// Brings a host back.
    pub fn end(&self, host: &str) {
        let mut hosts = self.0.write();
        let host = host.to_lowercase();
        if let Some(count) = hosts.get_mut(&host) {
            *count = count.saturating_sub(1);
        }
        hosts.retain(|_, count| *count > 0);
    }

    /// Fails if the host of an address is away.
    ///
    /// # Errors
    /// It is.
    pub fn check(&self, url: &str) -> Result<(), SourceError> {
        let hosts = self.0.read();
        if hosts.is_empty() {
            return Ok(());
        }
        match RepoId::parse(url).filter(|id| hosts.contains_key(id.host())) {
            Some(_) => {
                Err(SourceError::Fetch { url: url.to_owned(), reason: "Connection refused".to_owned() })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_away_under_all_of_its_addresses_until_it_is_back() {
        let outages = Outages::default();
        outages.begin("Git.example.com");
        for url in ["https://git.example.com/a/b.git", "git@git.example.com:a/b", "oci://git.example.com/a"] {
            assert!(outages.check(url).is_err(), "{url}");
        }
        assert!(outages.check("https://other.example.com/a").is_ok());
        outages.end("git.example.com");
        assert!(outages.check("https://git.example.com/a/b.git").is_ok());
    }
}
