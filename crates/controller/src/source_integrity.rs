//! Whether what is read for a project has the signatures that the project demands (Argo CD docs, "Git GnuPG
//! signature verification"; the words are those of `util/sourceintegrity`).

use std::{collections::BTreeSet, sync::Arc};

use tiphys_cluster::LiveCache;
use tiphys_model::{AppProjectSpec, Application, SignaturePolicy};
use tiphys_render::RenderError;
use tiphys_source::{Checkout, Keyring, Repositories, Signed, SignedRevision, Verdict, is_commit_id};
use tiphys_value::{ResourceKey, Value, json};

/// The ConfigMap with armored public keys by their ids.
pub(crate) const KEYS: &str = "argocd-gpg-keys-cm";
/// How many faults are told.
const MAX_PROBLEMS: usize = 10;

/// What a project demands, and the keys that are believed.
#[derive(Clone, Default)]
pub(crate) struct Integrity {
    spec: AppProjectSpec,
    keys: Keys,
}

/// The keys that are believed, and the text that they were read from.
#[derive(Clone, Default)]
pub(crate) struct Keys {
    text: Value,
    ring: Arc<Keyring>,
}

/// What was asked of a repository, and what came of it.
pub(crate) struct Asked<'a> {
    pub url: &'a str,
    pub revision: &'a str,
    pub checkout: &'a Checkout,
}

impl Integrity {
    /// What a project demands, with the keys that are believed.
    pub(crate) fn demanded_by(spec: AppProjectSpec, keys: Keys) -> Self {
        Self { spec, keys }
    }

    /// What it is a function of; null if nothing is demanded.
    pub(crate) fn inputs(&self) -> Value {
        match self.spec.source_integrity.is_none() && self.spec.signature_keys.is_empty() {
            true => Value::Null,
            false => json!([self.spec.integrity(), self.keys.text]),
        }
    }

    /// Whether signatures are demanded of a repository.
    fn demands(&self, url: &str) -> bool {
        self.spec.signatures_of(url) != Ok(None)
    }

    /// Refuses objects that somebody gives in the place of sources that need signatures.
    ///
    /// # Errors
    /// So it is, in Argo CD's words.
    pub(crate) fn refuse_given(&self, app: &Application) -> Result<(), RenderError> {
        let sources = app.spec.effective_sources();
        let mut in_git = sources.iter().filter(|source| !source.is_helm_repository() && !source.is_oci());
        match in_git.any(|source| self.demands(&source.repo_url)) {
            true => Err(RenderError::new("Cannot use local manifests when source integrity is enforced")),
            false => Ok(()),
        }
    }

    /// Refuses a checkout that lacks signatures. Returns whether all that is demanded was looked at: what was
    /// given as it is has no commit that could be signed.
    ///
    /// # Errors
    /// With whose are missing or wrong, or why it cannot be told.
    pub(crate) fn verify(
        &self,
        repositories: &Repositories,
        project: &str,
        asked: &Asked<'_>,
    ) -> Result<bool, RenderError> {
        let Asked { url, revision, checkout } = *asked;
        let Some(fetcher) = repositories.fetcher_for(project).filter(|_| !repositories.is_own_address(url))
        else {
            return Ok(!self.demands(url));
        };
        let Some(policy) = self.spec.signatures_of(url).map_err(RenderError::new)? else { return Ok(true) };
        let of = SignedRevision { url, revision, commit: &checkout.revision, extent: policy.extent };
        let signed =
            fetcher.signatures(of, &self.keys.ring).map_err(|error| RenderError::new(error.to_string()))?;
        let problems = problems(&policy, &signed);
        if problems.is_empty() { Ok(true) } else { Err(RenderError::new(problems.join("\n"))) }
    }
}

/// What is wrong with signatures, at most [`MAX_PROBLEMS`] of it, and of each key that commits are signed
/// with once.
fn problems(policy: &SignaturePolicy, signed: &[Signed]) -> Vec<String> {
    let mut told = BTreeSet::new();
    let faulty = signed.iter().filter_map(|signed| Some((signed, problem(policy, signed)?)));
    faulty
        .filter(|(signed, _)| {
            !is_commit_id(&signed.revision) || signed.key_id.is_empty() || told.insert(&signed.key_id)
        })
        .map(|(_, problem)| problem)
        .take(MAX_PROBLEMS)
        .collect()
}

fn problem(policy: &SignaturePolicy, signed: &Signed) -> Option<String> {
    let Signed { revision, author, verdict, key_id } = signed;
    let why = match verdict {
        Verdict::Good if policy.keys.contains(key_id) => return None,
        Verdict::Good => "signed with unallowed key",
        other => other.text(),
    };
    Some(format!("GIT/GPG: Failed verifying revision {revision} by '{author}': {why} (key_id={key_id})"))
}

impl Keys {
    /// Reads them again; whether they are others than before.
    pub(crate) fn read(&mut self, cache: &LiveCache, namespace: &str) -> bool {
        let map = cache.get(&ResourceKey::new("", "ConfigMap", namespace, KEYS));
        let text = map.and_then(|map| map.get("data").cloned()).unwrap_or_default();
        if self.text == text {
            return false;
        }
        let texts = text.as_object().into_iter().flatten().filter_map(|(_, text)| text.as_str());
        let (ring, faults) = Keyring::read(texts);
        for fault in faults {
            tracing::warn!("{KEYS}: a key cannot be read, and nothing that it signed is believed: {fault}");
        }
        *self = Self { ring: Arc::new(ring), text };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_model::SignatureExtent;

    const KEY: &str = "4AEE18F83AFDEB23";

    fn signed(revision: &str, verdict: Verdict, key_id: &str) -> Signed {
        Signed {
            revision: revision.into(),
            author: "Ada <ada@example.com>".into(),
            verdict,
            key_id: key_id.into(),
        }
    }

    #[test]
    fn each_key_is_told_once_and_each_unsigned_commit() {
        let policy = SignaturePolicy { extent: SignatureExtent::History, keys: vec![KEY.into()] };
        let commit = |digit: &str| digit.repeat(40);
        let all = [
            signed("v1", Verdict::MissingKey, "0123456789ABCDEF"),
            signed(&commit("a"), Verdict::MissingKey, "0123456789ABCDEF"),
            signed(&commit("b"), Verdict::MissingKey, "0123456789ABCDEF"),
            signed(&commit("c"), Verdict::Unsigned, ""),
            signed(&commit("d"), Verdict::Unsigned, ""),
            signed(&commit("e"), Verdict::Good, KEY),
            signed(&commit("f"), Verdict::Good, "FEDCBA9876543210"),
        ];
        let told = problems(&policy, &all);
        assert_eq!(told.len(), 5, "{told:#?}");
        assert_eq!(
            told[0],
            "GIT/GPG: Failed verifying revision v1 by 'Ada <ada@example.com>': signed with key not in keyring (key_id=0123456789ABCDEF)"
        );
        assert!(told[4].ends_with("signed with unallowed key (key_id=FEDCBA9876543210)"), "{}", told[4]);
        assert_eq!(problems(&policy, &[signed("v1", Verdict::Good, KEY)]), Vec::<String>::new());
    }
}
