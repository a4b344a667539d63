//! One thing that will break.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tiphys_diag::{Diagnostic, Edit};

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It depends on something that the repository does not say.
    Likely,
    /// It follows from the repository alone.
    Certain,
}

/// A way to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What to do.
    pub description: String,
    /// The edits that do it; empty if a person has to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patch: Vec<Edit>,
}

/// One thing that will break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What, where, why and what to do.
    pub diagnostic: Diagnostic,
    /// The incident of its kind, such as `A1`.
    pub incident: &'static str,
    /// The Application concerned.
    pub app: Option<String>,
    /// The object concerned: `Kind/name`, with the namespace if it has one.
    pub object: Option<String>,
    /// How sure it is.
    pub confidence: Confidence,
    /// A way to mend it.
    pub fix: Option<Fix>,
}

impl Finding {
    /// What makes it the same finding after lines have moved: rule, file, subject, message without digits.
    pub fn fingerprint(&self) -> String {
        let file = self.diagnostic.primary.as_ref().map(|label| label.span.file.as_ref()).unwrap_or_default();
        let message: String = self.diagnostic.message.chars().filter(|c| !c.is_ascii_digit()).collect();
        let subject = self.object.as_deref().or(self.app.as_deref()).unwrap_or_default();
        let text = format!("{}\n{file}\n{subject}\n{message}", self.diagnostic.rule);
        let hash = Sha256::digest(text);
        hash.iter().take(12).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    /// A finding that follows from the repository alone, without application, object or fix yet.
    pub fn new(incident: &'static str, diagnostic: Diagnostic) -> Self {
        Self { diagnostic, incident, app: None, object: None, confidence: Confidence::Certain, fix: None }
    }

    /// The same about an Application.
    #[must_use]
    pub fn app(mut self, name: impl Into<String>) -> Self {
        self.app = Some(name.into());
        self
    }

    /// The same about an object.
    #[must_use]
    pub fn object(mut self, title: impl Into<String>) -> Self {
        self.object = Some(title.into());
        self
    }

    /// The same, but not certain.
    #[must_use]
    pub fn likely(mut self) -> Self {
        self.confidence = Confidence::Likely;
        self
    }

    /// The edits that mend it, if there are any.
    pub fn patch(&self) -> Option<&[Edit]> {
        self.fix.as_ref().map(|fix| fix.patch.as_slice()).filter(|patch| !patch.is_empty())
    }

    /// The same with a way to mend it.
    #[must_use]
    pub fn fix(mut self, description: impl Into<String>, patch: Vec<Edit>) -> Self {
        self.fix = Some(Fix { description: description.into(), patch });
        self
    }
}
